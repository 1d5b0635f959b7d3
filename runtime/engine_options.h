// What an engine is opened with. Every default suits a machine that is there for it alone.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "kernels/kv_layout.h"
#include "kernels/numa.h"

namespace troupe {

struct EngineOptions {
  std::string isa;  // "", "auto", "reference", "avx2", "avx-vnni", "avx512", "vnni", "amx"
  int threads = 0;  // 0: every CPU this process may use
  Numa numa = Numa::interleave;
  KvType kv_type = KvType::f16;  // i8: about half of f16's memory, other (no less reproducible) tokens
  std::int64_t context = 0;      // tokens a session may hold; 0: what the model was trained for
  std::uint64_t kv_memory = 0;   // bytes; 0: a quarter of the memory (cgroup limit counts) or 16 contexts, the less
  std::int64_t max_rows = 512;   // rows of one launch
  std::string chat_template;     // a template's source instead of the file's; "": the file's
  bool expand_to_f32 = false;    // dequantize every matrix on load: float accuracy, four to eight times the memory
  bool poison_pages = false;     // PagePool's poison, for tests
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

}  // namespace troupe
