// PageAccount: the bill of one who holds pages, a session say. Open as long as it lives.
//
// Its payer() is named when pages are taken (PagePool::take) and may outlive it: what is still held then, by a launch
// say, goes on being paid, among those that have ended.
#pragma once

#include <memory>
#include <utility>

#include "runtime/kv/page_pool.h"

namespace troupe {

class PageAccount {
 public:
  explicit PageAccount(std::shared_ptr<PagePool> pool)
      : pool_(std::move(pool)), payer_(std::make_shared<PagePayer>()) {}
  PageAccount(const PageAccount&) = delete;
  PageAccount& operator=(const PageAccount&) = delete;
  ~PageAccount() { pool_->close_account(*payer_); }

  const std::shared_ptr<PagePayer>& payer() const { return payer_; }
  PageTime paid() const { return pool_->paid_by(*payer_); }

 private:
  std::shared_ptr<PagePool> pool_;
  std::shared_ptr<PagePayer> payer_;
};

}  // namespace troupe
