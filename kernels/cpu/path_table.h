// Fills a Path from the templates for one vector type. Included by path_*.cpp only.
#pragma once

#include "kernels/cpu/attention_kernel.h"
#include "kernels/cpu/matmul_kernel.h"
#include "kernels/cpu/path.h"
#include "kernels/cpu/quantize_kernel.h"
#include "kernels/cpu/row_kernel.h"

namespace troupe::cpu {

template <class V>
constexpr Path make_path(const char* name) {
  using K = Kernels<V>;
  using R = RowKernels<V>;
  return {name,
          V::kRows,
          {K::template floating<DType::f32>(), K::template floating<DType::f16>(), K::template floating<DType::bf16>(),
           K::template quantized<GroupFormat<V, false, 4, 8>>(), K::template quantized<GroupFormat<V, true, 4, 0>>(),
           K::template quantized<GroupFormat<V, false, 5, 16>>(), K::template quantized<GroupFormat<V, true, 5, 0>>(),
           K::template quantized<GroupFormat<V, false, 8, 128>>(), K::template quantized<SuperFormat<V, 4>>(),
           K::template quantized<SuperFormat<V, 5>>(), K::template quantized<SixFormat<V>>()},
          R::rms_factor,
          R::rms_scale,
          QuantizeKernel<V>::quantize,
          R::all_finite,
          R::swiglu,
          R::rope,
          R::store_kv,
          attend_any<V>,
          R::log_sum_exp,
          R::argmax};
}

}  // namespace troupe::cpu
