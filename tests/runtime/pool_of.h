// A pool of the smallest pages, poisoned while nobody holds them: for tests of who owns what.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/kv/page_pool.h"

namespace troupe::test {

inline std::shared_ptr<PagePool> pool_of(std::int64_t pages) {
  const KvLayout layout{1, 1, 16, KvType::f16};
  return std::make_shared<PagePool>(allocate_host(static_cast<std::size_t>(pages) * layout.page_bytes()), layout, pages,
                                    true);
}

}  // namespace troupe::test
