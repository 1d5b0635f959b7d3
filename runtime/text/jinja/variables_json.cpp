#include "runtime/text/jinja/variables_json.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace troupe::jinja {
namespace {

using Json = nlohmann::ordered_json;

class Reader final : public nlohmann::json_sax<Json> {
 public:
  Reader(Heap& heap, bool is_data, bool is_context) : heap_(heap), is_data_(is_data), is_context_(is_context) {}

  bool null() override { return add(Value()); }
  bool boolean(bool value) override { return add(Value(value)); }
  bool number_integer(number_integer_t value) override { return add(Value(std::int64_t{value})); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return add(digits(std::to_string(value)));
    }
    return add(Value(static_cast<std::int64_t>(value)));
  }
  bool number_float(number_float_t value, const string_t& spelling) override {
    return add(spelling.find_first_of(".eE") == spelling.npos ? digits(spelling) : Value(value));
  }
  bool string(string_t& value) override {
    const bool trusted = is_role() && is_conventional_role(value);
    return add(heap_.text(value, is_data_ && !trusted));
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(true); }
  bool key(string_t& value) override {
    open_.back().key = heap_.text(value, is_data_);
    return true;
  }
  bool end_object() override {
    Dict dict = std::move(open_.back().dict);
    open_.pop_back();
    return add(heap_.dict(std::move(dict)));
  }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override {
    std::vector<Value> items = std::move(open_.back().items);
    open_.pop_back();
    return add(heap_.list(std::move(items)));
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    fail_runtime("malformed JSON at byte " + std::to_string(position) + ": " + error.what());
  }

  Value result() const { return result_; }

 private:
  struct Open {
    bool is_object;
    Value key;
    Dict dict;
    std::vector<Value> items;
  };

  bool open(bool is_object) {
    if (std::ssize(open_) >= kMaxJsonDepth) {
      fail_runtime("JSON nested more than " + std::to_string(kMaxJsonDepth) + " levels deep");
    }
    heap_.meter().take(sizeof(Open));
    open_.push_back({is_object, {}, {}, {}});
    return true;
  }

  bool add(const Value& value) {
    if (open_.empty()) {
      result_ = value;
    } else if (open_.back().is_object) {
      open_.back().dict.set(open_.back().key, value, heap_.meter());
    } else {
      heap_.meter().take(sizeof(Value));
      open_.back().items.push_back(value);
    }
    return true;
  }

  // {"messages": [{"role": HERE}]}
  bool is_role() const {
    return is_context_ && open_.size() == 3 && open_[0].is_object && !open_[1].is_object && open_[2].is_object &&
           open_[0].key.bytes() == "messages" && open_[2].key.bytes() == "role";
  }

  Value digits(const std::string& spelling) { return Value::digits(&heap_.text(spelling).text()); }

  Heap& heap_;
  bool is_data_, is_context_;
  std::vector<Open> open_;
  Value result_;
};

}  // namespace

bool is_conventional_role(std::string_view role) {
  static constexpr std::string_view kRoles[] = {"user", "assistant", "system", "tool", "developer", "function"};
  return std::ranges::find(kRoles, role) != std::end(kRoles);
}

Value read_json(std::string_view json, Heap& heap, bool is_data) {
  Reader reader(heap, is_data, false);
  Json::sax_parse(json, &reader);
  return reader.result();
}

const Dict& read_context(std::string_view json, Heap& heap) {
  Reader reader(heap, true, true);
  Json::sax_parse(json, &reader);
  if (!reader.result().is(Value::Kind::dict)) fail_runtime("the context of a template must be a JSON object");
  return reader.result().dict();
}

}  // namespace troupe::jinja
