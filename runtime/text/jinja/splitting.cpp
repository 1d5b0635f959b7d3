// Splitting, joining and replacing (methods.h), shared by string methods and filters.
#include <algorithm>
#include <limits>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/methods.h"
#include "runtime/text/jinja/operators.h"

namespace troupe::jinja {
namespace {

class Parts {
 public:
  Parts(const Text& text, Heap& heap) : text_(text), heap_(heap) { heap.meter().step(text.size() / 16); }

  void add(std::size_t begin, std::size_t end) {
    TextBuilder out(heap_.meter());
    out.append(text_, begin, end);
    parts_.push_back(heap_.text(out));
  }
  std::int64_t size() const { return std::ssize(parts_); }
  std::vector<Value> take() { return std::move(parts_); }

 private:
  const Text& text_;
  Heap& heap_;
  std::vector<Value> parts_;
};

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

std::vector<Value> split_at_space(const Text& text, std::int64_t most, Heap& heap) {
  const std::string_view bytes = text.bytes();
  Parts parts(text, heap);
  std::size_t begin = bytes.npos;  // of the word that is being read
  std::size_t length = 0;
  for (std::size_t at = 0; at < bytes.size(); at += length) {
    const bool space = is_space(decode_character(bytes.substr(at), length));
    if (!space && begin == bytes.npos) {
      if (most >= 0 && parts.size() >= most) {  // the rest is one part
        parts.add(at, stripped_of_space(bytes, false, true).end);
        return parts.take();
      }
      begin = at;
    } else if (space && begin != bytes.npos) {
      parts.add(begin, at);
      begin = bytes.npos;
    }
  }
  if (begin != bytes.npos) parts.add(begin, bytes.size());
  return parts.take();
}

std::vector<Value> split_at(const Text& text, std::string_view separator, std::int64_t most, Heap& heap) {
  if (separator.empty()) fail_runtime("empty separator");
  const std::string_view bytes = text.bytes();
  Parts parts(text, heap);
  std::size_t begin = 0;
  while (most < 0 || parts.size() < most) {
    const std::size_t at = bytes.find(separator, begin);
    if (at == bytes.npos) break;
    parts.add(begin, at);
    begin = at + separator.size();
  }
  parts.add(begin, bytes.size());
  return parts.take();
}

std::vector<Value> split_lines(const Text& text, Heap& heap) {
  const std::string_view bytes = text.bytes();
  Parts parts(text, heap);
  std::size_t begin = 0, length = 0;
  for (std::size_t at = 0; at < bytes.size(); at += length) {
    if (!ends_line(decode_character(bytes.substr(at), length))) continue;
    parts.add(begin, at);
    if (bytes.substr(at).starts_with("\r\n")) length = 2;
    begin = at + length;
  }
  if (begin < bytes.size()) parts.add(begin, bytes.size());
  return parts.take();
}

namespace {

// old is empty: `with` stands before every character and at the end.
Text interspersed(const Text& text, const Text& with, std::size_t most, Meter& meter) {
  TextBuilder out(meter);
  std::size_t at = 0, length = 0;
  for (std::size_t done = 0; done < most; ++done, at += length) {
    out.append(with);
    meter.step();
    if (at >= text.size()) break;
    decode_character(std::string_view(text.bytes()).substr(at), length);
    out.append(text, at, at + length);
  }
  if (at < text.size()) out.append(text, at, text.size());
  return out.finish();
}

}  // namespace

Text replaced(const Text& text, std::string_view old, const Text& with, std::int64_t most, Meter& meter) {
  const std::size_t limit = most < 0 ? std::numeric_limits<std::size_t>::max() : static_cast<std::size_t>(most);
  if (old.empty()) return interspersed(text, with, limit, meter);
  meter.step(text.size() / 16);
  const std::string_view bytes = text.bytes();
  TextBuilder out(meter);
  std::size_t begin = 0;
  for (std::size_t done = 0; done < limit; ++done) {
    const std::size_t at = bytes.find(old, begin);
    if (at == bytes.npos) break;
    out.append(text, begin, at);
    out.append(with);
    meter.step();
    begin = at + old.size();
  }
  out.append(text, begin, bytes.size());
  return out.finish();
}

Value joined(const Text& separator, const std::vector<Value>& parts, Heap& heap) {
  TextBuilder out(heap.meter());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].is_string()) {
      fail_runtime("sequence item " + std::to_string(i) + ": expected str instance, " +
                   std::string(type_name(parts[i])) + " found");
    }
    if (i > 0) out.append(separator);
    out.append(parts[i].text());
    heap.meter().step();
  }
  return heap.text(out);
}

}  // namespace troupe::jinja
