#include "runtime/text/jinja/operators.h"
#include "runtime/text/jinja/value.h"

namespace troupe::jinja {

const Value* Dict::find(std::string_view key) const {
  const auto found = strings_.find(key);
  return found == strings_.end() ? nullptr : &entries_[found->second].second;
}

std::size_t Dict::position(const Value& key, Meter& meter) const {
  if (key.is_string()) {
    meter.step(1 + key.bytes().size() / 64);
    const auto found = strings_.find(key.bytes());
    return found == strings_.end() ? entries_.size() : found->second;
  }
  if (others_ == 0) return entries_.size();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (!entries_[i].first.is_string() && equals(entries_[i].first, key, meter)) return i;
    meter.step();
  }
  return entries_.size();
}

const Value* Dict::find(const Value& key, Meter& meter) const {
  const std::size_t at = position(key, meter);
  return at == entries_.size() ? nullptr : &entries_[at].second;
}

void Dict::set(const Value& key, const Value& value, Meter& meter) {
  const std::size_t at = position(key, meter);
  if (at < entries_.size()) {
    entries_[at].second = value;
    return;
  }
  meter.take(sizeof(Entry) + (key.is_string() ? 64 : 0));  // 64: a node of the index
  if (key.is_string()) {
    strings_.emplace(key.bytes(), at);
  } else {
    ++others_;
  }
  entries_.emplace_back(key, value);
}

}  // namespace troupe::jinja
