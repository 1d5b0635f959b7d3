// Sessions beside the load's own: no part of what is measured, but what it is measured beside. They are there before
// the load comes and until it has ended, in the same host.
#pragma once

#include <future>
#include <memory>

#include "apps/troupe/bench_host.h"
#include "apps/troupe/bench_work.h"
#include "kernels/result.h"

namespace troupe::app {

// Their sink, until it is told to stop.
using CompanyActor = SinkActor::extend<caf::result<void>(stop_atom)>;

class BenchCompany {
 public:
  // Returns when each has had its first turn, or stands still.
  BenchCompany(BenchHost& host, const Company& company, std::int64_t vocabulary);
  BenchCompany(const BenchCompany&) = delete;
  BenchCompany& operator=(const BenchCompany&) = delete;
  ~BenchCompany();

  // Ends them. An Error when one of them failed, or a reader without credit was read to.
  Result<CompanyResult> leave();

 private:
  CompanyActor actor_;
  std::future<Result<CompanyResult>> told_;
};

}  // namespace troupe::app
