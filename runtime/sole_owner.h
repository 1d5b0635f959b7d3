// sole_owner: whether an object that was lent out may be changed in place again.
#pragma once

#include <memory>

namespace troupe {

// True when `owner` is the only holder of its object, and then all that former holders did with it has happened before
// the return. use_count() == 1 alone does not say so: it is a relaxed load. Letting go of one more hold is not: it
// acquires what every earlier release of the same count made visible.
template <class T>
bool sole_owner(const std::shared_ptr<T>& owner) {
  if (owner.use_count() != 1) return false;
  std::shared_ptr<T>(owner).reset();
  return true;
}

}  // namespace troupe
