#include "tests/support/emulated_amx.h"

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/emulated_amx_path.h"

namespace troupe::test {
namespace {

// Every quantized format asks, for matrices of any size.
cpu::Path from_one_row(cpu::Path path) {
  for (DType type = DType::q4_0; type <= DType::q6_k; type = static_cast<DType>(static_cast<int>(type) + 1)) {
    path.wide.from_rows[static_cast<std::size_t>(type)] = 1;
  }
  path.wide.small_times = 1;
  return path;
}

}  // namespace

std::unique_ptr<Backend> make_emulated_amx_backend(WideFrom from, int threads) {
  static const cpu::Path kAlways = from_one_row(emulated_amx_path());
  return std::make_unique<cpu::CpuBackend>(from == WideFrom::one_row ? kAlways : emulated_amx_path(), threads,
                                           Numa::off);
}

}  // namespace troupe::test
