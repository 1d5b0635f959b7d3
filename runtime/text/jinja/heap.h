// Heap: owns the objects of one rendering (or the constants of one template) and frees them all at its end.
//
// No reference counts: a namespace may hold itself, a macro its own scope, and a list may be nested a million deep,
// and all of it is freed flat.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/text/jinja/marked_text.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

class Heap {
 public:
  explicit Heap(Meter& meter) : meter_(&meter) {}
  Heap(Heap&&) = default;

  template <class T>
  T* make(T value) {
    constexpr std::size_t kOwnership = 32;
    meter_->take(sizeof(Box<T>) + kOwnership);
    auto box = std::make_unique<Box<T>>(std::move(value));
    T* object = &box->value;
    objects_.push_back(std::move(box));
    return object;
  }

  Value text(Text text) { return static_cast<const Text*>(make(std::move(text))); }
  Value text(TextBuilder& builder) { return text(builder.finish()); }
  // Written by the template or by us.
  Value text(std::string_view bytes, bool is_data = false) {
    TextBuilder out(*meter_);
    out.append(bytes, is_data);
    return text(out);
  }
  Value list(std::vector<Value> items, List::Flavor flavor = List::Flavor::list) {
    meter_->take(items.size(), sizeof(Value));
    return make(List{flavor, std::move(items)});
  }
  Value dict(Dict dict) { return static_cast<const Dict*>(make(std::move(dict))); }
  Value undefined(std::string message, bool is_security = false) {
    meter_->take(message.size());
    return static_cast<const Undefined*>(make(Undefined{std::move(message), is_security}));
  }

  Meter& meter() { return *meter_; }

 private:
  struct Object {
    virtual ~Object() = default;
  };
  template <class T>
  struct Box final : Object {
    explicit Box(T v) : value(std::move(v)) {}
    T value;
  };

  Meter* meter_;
  std::vector<std::unique_ptr<Object>> objects_;
};

}  // namespace troupe::jinja
