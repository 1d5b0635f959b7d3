// The case mappings of characters.h, by the tables of unicode_tables.h.
#include <algorithm>

#include "runtime/text/jinja/characters.h"
#include "runtime/text/jinja/unicode_tables.h"

namespace troupe::jinja {
namespace {

char32_t mapped(std::span<const CaseRange> table, char32_t code) {
  const auto after = std::ranges::upper_bound(table, code, {}, &CaseRange::first);
  if (after == table.begin()) return code;
  const CaseRange& range = *std::prev(after);
  if (code > range.last || (code - range.first) % range.step != 0) return code;
  return static_cast<char32_t>(static_cast<std::int32_t>(code) + range.shift);
}

const CaseExpansion* expansion(char32_t code) {
  const auto found = std::ranges::lower_bound(upper_expansions(), code, {}, &CaseExpansion::code);
  return found != upper_expansions().end() && found->code == code ? &*found : nullptr;
}

void append_upper(TextBuilder& out, Character c) {
  if (const CaseExpansion* longer = expansion(c.code)) {
    for (char32_t code : longer->upper) {
      if (code != 0) append(out, {code, c.is_data});
    }
    return;
  }
  append(out, {mapped(upper_ranges(), c.code), c.is_data});
}

constexpr char32_t kSigma = 0x3A3, kFinalSigma = 0x3C2, kDottedI = 0x130, kDotAbove = 0x307;

// The lower form of characters[i]: a sigma at the end of a word has its own.
void append_lower(TextBuilder& out, const std::vector<Character>& text, std::size_t i) {
  const Character c = text[i];
  if (c.code == kDottedI) {
    append(out, {'i', c.is_data});
    append(out, {kDotAbove, c.is_data});
  } else if (c.code == kSigma) {
    const bool ends_word = i > 0 && is_cased(text[i - 1].code) && (i + 1 == text.size() || !is_cased(text[i + 1].code));
    append(out, {ends_word ? kFinalSigma : mapped(lower_ranges(), kSigma), c.is_data});
  } else {
    append(out, {mapped(lower_ranges(), c.code), c.is_data});
  }
}

void append_title(TextBuilder& out, Character c) {
  const bool dz_like = c.code >= 0x1C4 && c.code <= 0x1F3 && (c.code <= 0x1CC || c.code >= 0x1F1);
  const bool georgian = c.code >= 0x10D0 && c.code <= 0x10FF;
  if (dz_like || georgian || expansion(c.code) != nullptr) {
    fail_unsupported("the title form of an unusual letter is not supported");
  }
  append_upper(out, c);
}

}  // namespace

bool is_upper(char32_t code) {
  return mapped(lower_ranges(), code) != code || code == kDottedI;
}
bool is_lower(char32_t code) {
  return mapped(upper_ranges(), code) != code || expansion(code) != nullptr;
}
bool is_cased(char32_t code) {
  return is_upper(code) || is_lower(code);
}

Text to_upper(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  for (Character c : characters(text, meter)) append_upper(out, c);
  return out.finish();
}

Text to_lower(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  const auto all = characters(text, meter);
  for (std::size_t i = 0; i < all.size(); ++i) append_lower(out, all, i);
  return out.finish();
}

Text to_title(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  const auto all = characters(text, meter);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && is_cased(all[i - 1].code)) {
      append_lower(out, all, i);
    } else {
      append_title(out, all[i]);
    }
  }
  return out.finish();
}

Text capitalized(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  const auto all = characters(text, meter);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) {
      append_lower(out, all, i);
    } else {
      append_title(out, all[i]);
    }
  }
  return out.finish();
}

Text swapped_case(const Text& text, Meter& meter) {
  TextBuilder out(meter);
  const auto all = characters(text, meter);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (is_upper(all[i].code)) {
      append_lower(out, all, i);
    } else {
      append_upper(out, all[i]);
    }
  }
  return out.finish();
}

}  // namespace troupe::jinja
