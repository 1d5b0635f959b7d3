// What the run measured: a table for people as it goes, and one JSON document at the end.
//
// {"machine", "threads", "ceilings": [{"instruction", "gmac_per_second"}],
//  "bandwidth": [{"threads", "pages", "gb_per_second"}],
//  "cells": [{"mode", "path", "format", "rows", "threads", "gmac_per_second", "spread", "best_gmac_per_second",
//             "ceiling", "ceiling_gmac_per_second", "share", "weight_gb_per_second"}]}
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "apps/kernel_bench/cell.h"

namespace troupe::kernel_bench {

struct CellName {
  bool hot = false;
  Isa isa = Isa::avx2;
  DType type = DType::f32;
  std::int64_t rows = 0;
  int threads = 1;
};

class Report {
 public:
  explicit Report(int threads);

  void ceiling(const Ceiling& ceiling, const Samples& rates);
  void bandwidth(int threads, const char* pages, double best);  // GB/s
  void cells_begin();
  void cell(const CellName& name, const Ceiling& ceiling, const Cell& cell);

  // False when the file cannot be written.
  bool write(const std::string& path) const;

 private:
  nlohmann::ordered_json document_;
};

}  // namespace troupe::kernel_bench
