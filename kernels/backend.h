// Backend: all that one device can do for a launch.
//
// The operations are the phases of a decoder layer, each over ALL rows of a batch, output named first. A phase is one
// equation with its norm and quantization named in docs/numerics.md; how a backend splits it into loops, threads or
// device kernels is its own business, the bits are not: reference/, and every path of cpu/, give the same ones.
//
//     embed(h, ...)                                   h = table[token]
//     for each layer:
//       qkv(q, k, v, h, ...)                          q, k, v = rms_norm(h) * {Wq, Wk, Wv}
//       attend(out, q, k, v, ...)                     rope; keys and values into the pages; softmax(q.k) v
//       project_add(h, out, Wo)                       h += out * Wo
//       gate_up(act, h, ...)                          act = silu(n Wgate) * (n Wup), n = rms_norm(h)
//       down_add(h, act, Wdown)                       h += act * Wdown
//     head(logits, h, rows, ...)                      logits = rms_norm(h[rows]) * Whead
//     argmax / top_candidates / log_sum_exp           what sampling needs of a logits row
//
// Row matrices are float32, row-major, in memory from allocate(). A row's result depends on that row (and its own
// pages) alone: never on how many rows there are, on their order, or on the number of threads.
// A non-finite value met while a row is quantized or normed marks the row in BatchView::faulty (or in `faulty` of
// head) and counts as zero from there on: it never reaches another row, and the row's results must not be used.
//
// One caller at a time. Every pointer lent to a call stays the caller's. Throws DeviceFault (kernels/fault.h) when the
// device fails; never on data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "kernels/batch_view.h"
#include "kernels/buffer.h"
#include "kernels/kv_layout.h"
#include "kernels/numa.h"
#include "kernels/result.h"
#include "kernels/rope.h"
#include "kernels/tensor.h"

namespace troupe {

// A weight matrix [rows = outputs][cols = inputs] laid out for one backend: a view of weight_bytes() bytes, aligned to
// 64, of memory from that backend's allocate(). The model owns the memory of all its weights as one Buffer, so that
// small matrices share huge pages too. Filled once by fill(), immutable afterwards.
struct PreparedWeight {
  DType type = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::byte* data = nullptr;
};

struct NormWeight {
  std::span<const float> weight;  // [cols], host memory
  float epsilon = 1e-5f;
};

struct QkvArgs {
  float* q;        // [rows][wq.rows]
  float* k;        // [rows][wk.rows]
  float* v;        // [rows][wv.rows]
  const float* h;  // [rows][cols]
  NormWeight norm;
  const PreparedWeight& wq;
  const PreparedWeight& wk;
  const PreparedWeight& wv;
};

struct AttendArgs {
  float* out;  // [rows][heads * head_dim]
  float* q;    // [rows][heads * head_dim], rotated in place
  float* k;    // [rows][kv_heads * head_dim], rotated in place
  const float* v;
  const RopeTable& rope;
  const KvLayout& layout;
  int layer;
  int heads;    // query heads; heads % layout.kv_heads == 0, head h reads kv head h / (heads / kv_heads)
  float scale;  // float(1 / sqrt(head_dim))
};

struct GateUpArgs {
  float* act;      // [rows][wgate.rows]
  const float* h;  // [rows][cols]
  NormWeight norm;
  const PreparedWeight& wgate;
  const PreparedWeight& wup;
  // What multiplies `act` in the very next call, or null. A backend may then keep act in the form which that weight
  // wants, and leave args.act as it is.
  const PreparedWeight* next = nullptr;
};

struct HeadArgs {
  float* logits;                       // [rows.size()][w.rows]
  const float* h;                      // [batch rows][cols]
  std::span<const std::int32_t> rows;  // which rows of h want logits
  NormWeight norm;
  const PreparedWeight& w;
};

struct Candidate {
  float logit;
  std::int32_t id;
};

// The `count` largest logits of one row: sorted by logit descending, ties by lower id; NaN sorts last.
struct TopRequest {
  const float* logits;  // [vocabulary]
  std::int64_t vocabulary;
  std::int64_t count;  // 1 .. vocabulary
  Candidate* out;      // [count]
};

// log(sum exp(l)) over one row as docs/numerics.md words it (64 partials, own exp and log).
struct LogSumRequest {
  const float* logits;
  std::int64_t vocabulary;
  float* out;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // For people: "cpu avx512-vnni, 2 threads".
  virtual std::string describe() const = 0;
  // Zeroed memory of this device. Throws std::bad_alloc.
  virtual Buffer allocate(std::size_t bytes) = 0;

  // Bytes of such a weight in this backend's layout, a multiple of 64; at most 1.03 times the file's bytes, plus the
  // padding of the rows to a multiple of 16.
  virtual std::size_t weight_bytes(DType type, std::int64_t rows, std::int64_t cols) const = 0;
  // Lays `row_count` rows of the file's bytes into rows first_row.. of the weight. first_row is a multiple of 16; so is
  // row_count, except at the end. Refuses non-finite scales and values: the message names the row. Different row
  // ranges of one weight, and different weights, may be filled from different threads at once.
  virtual Result<void> fill(const PreparedWeight& weight, std::int64_t first_row, std::int64_t row_count,
                            std::span<const std::byte> file_rows) = 0;

  // Called before the first launch with the largest shapes that will come: scratch is allocated here, and nothing
  // allocates afterwards. Between launches it may be called again, with shapes no smaller.
  struct Limits {
    std::int64_t rows = 0;    // rows of one launch
    std::int64_t widest = 0;  // largest `cols` of any weight
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t vocabulary = 0;
  };
  virtual void reserve(const Limits& limits) = 0;

  virtual void embed(float* h, const PreparedWeight& table, const BatchView& batch) = 0;
  virtual void qkv(const QkvArgs& args, const BatchView& batch) = 0;
  virtual void attend(const AttendArgs& args, const BatchView& batch) = 0;
  // h += x * w, x is [rows][w.cols].
  virtual void project_add(float* h, const float* x, const PreparedWeight& w, const BatchView& batch) = 0;
  virtual void gate_up(const GateUpArgs& args, const BatchView& batch) = 0;
  virtual void down_add(float* h, const float* act, const PreparedWeight& w, const BatchView& batch) = 0;
  virtual void head(const HeadArgs& args, const BatchView& batch) = 0;

  // Sampling reductions, each over all its requests at once. Ties go to the lower id.
  virtual void top_candidates(std::span<const TopRequest> requests) = 0;
  virtual void log_sum_exp(std::span<const LogSumRequest> requests) = 0;
};

// The plain scalar form of docs/numerics.md: one thread, no vector code, weights in the file's own layout.
std::unique_ptr<Backend> make_reference_backend();

// Instruction-set paths of the CPU backend, weakest first.
enum class Isa : std::uint8_t { avx2, avx_vnni, avx512, avx512_vnni, amx_int8 };
inline constexpr Isa kIsas[] = {Isa::avx2, Isa::avx_vnni, Isa::avx512, Isa::avx512_vnni, Isa::amx_int8};
const char* name(Isa isa);
// Whether this processor (and its operating system) can run the path. Asks the system for AMX's registers where the
// processor has them.
bool supported(Isa isa);
// The strongest supported path; an error sentence on a processor without AVX2, FMA and F16C.
Result<Isa> best_isa();

// threads >= 1. The pool owns threads - 1 workers; the caller is the last one.
// Throws std::system_error when the system starts no more threads, std::bad_alloc when it has no memory.
std::unique_ptr<Backend> make_cpu_backend(Isa isa, int threads, Numa numa = Numa::interleave);

// CPUs that this process may use: its affinity mask and its cgroup's quota count.
int usable_cpus();

// The choice a user makes with --isa and --threads: "reference", the name of an Isa ("avx2", "avx-vnni", "avx512",
// "vnni", "amx"), or "" / "auto" for the best. threads 0: usable_cpus().
Result<std::unique_ptr<Backend>> make_backend(const std::string& isa, int threads, Numa numa = Numa::interleave);

}  // namespace troupe
