#include "runtime/load/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "kernels/quant/formats.h"

namespace troupe {
namespace {

std::string shape(std::int64_t rows, std::int64_t cols) {
  return rows == 1 ? "[" + std::to_string(cols) + "]" : "[" + std::to_string(rows) + " x " + std::to_string(cols) + "]";
}

std::string shape(const GgufTensor& tensor) {
  std::string out = "[";
  for (std::size_t d = tensor.dims.size(); d-- > 1;) out += std::to_string(tensor.dims[d]) + " x ";
  return out + std::to_string(tensor.cols) + "]";
}

Result<const GgufTensor*> find(const Gguf& file, std::string_view name, std::int64_t rows, std::int64_t cols) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return Error{ErrorCode::bad_input, "tensor " + std::string(name) + " is missing"};
  // A matrix is not a stack of matrices that has as many rows.
  const bool flat = tensor->dims.size() < 2 || tensor->dims[1] == tensor->rows;
  if (!flat || tensor->rows != rows || tensor->cols != cols) {
    return Error{ErrorCode::bad_input, "tensor " + std::string(name) + " has shape " + shape(*tensor) +
                                           "; the metadata asks for " + shape(rows, cols)};
  }
  return tensor;
}

struct Job {
  const GgufTensor* tensor;
  PreparedWeight weight;
};

// Reads and lays out one matrix after another; several threads share the jobs.
class Filler {
 public:
  Filler(const Gguf& file, Backend& backend, std::span<const Job> jobs, std::size_t staging)
      : file_(file), backend_(backend), jobs_(jobs), staging_(static_cast<std::int64_t>(staging)) {}

  // One thread's work. Never throws: what goes wrong stands in outcome().
  void work() noexcept {
    try {
      std::vector<std::byte> staging(largest([this](const Job& job) { return rows_at_once(job) * row_bytes(job); }));
      std::vector<float> expanded(
          largest([this](const Job& job) { return expands(job) * rows_at_once(job) * cols(job); }));
      for (std::size_t i = next_++; i < jobs_.size() && !failed_; i = next_++) {
        if (auto filled = fill(jobs_[i], staging, expanded); !filled) fail(filled.error(), nullptr);
      }
    } catch (...) {
      fail({}, std::current_exception());
    }
  }

  std::uint64_t done() const { return done_; }
  // Of the first thread that failed; rethrows what the backend threw. After all threads have ended.
  Result<void> outcome() const {
    if (thrown_) std::rethrow_exception(thrown_);
    if (failed_) return error_;
    return {};
  }

 private:
  static std::int64_t cols(const Job& job) { return job.tensor->cols; }
  static std::int64_t row_bytes(const Job& job) {
    return static_cast<std::int64_t>(job.tensor->bytes) / job.tensor->rows;
  }
  static std::int64_t expands(const Job& job) { return job.weight.type != job.tensor->type ? 1 : 0; }
  // A multiple of 16, or all of a smaller matrix. The float copy of an expanded one shares the allowance.
  std::int64_t rows_at_once(const Job& job) const {
    const std::int64_t cost = row_bytes(job) + 4 * expands(job) * cols(job);
    return std::min(job.tensor->rows, std::max<std::int64_t>(16, staging_ / cost / 16 * 16));
  }
  template <class Size>
  std::size_t largest(Size&& size) const {
    std::int64_t out = 0;
    for (const Job& job : jobs_) out = std::max(out, size(job));
    return static_cast<std::size_t>(out);
  }

  Result<void> fill(const Job& job, std::span<std::byte> staging, std::span<float> expanded) {
    const std::int64_t step = rows_at_once(job), bytes = row_bytes(job);
    for (std::int64_t row = 0; row < job.tensor->rows && !failed_; row += step) {
      const std::int64_t rows = std::min(step, job.tensor->rows - row);
      const auto slice = staging.first(static_cast<std::size_t>(rows * bytes));
      if (auto read = file_.read(*job.tensor, static_cast<std::uint64_t>(row * bytes), slice); !read) return read;
      if (auto placed = place(job, row, rows, slice, expanded); !placed) {
        return Error{placed.error().code, "tensor " + job.tensor->name + ": " + placed.error().message};
      }
      done_ += slice.size();
    }
    return {};
  }

  Result<void> place(const Job& job, std::int64_t row, std::int64_t rows, std::span<const std::byte> bytes,
                     std::span<float> expanded) {
    if (expands(job) == 0) return backend_.fill(job.weight, row, rows, bytes);
    const auto values = expanded.first(static_cast<std::size_t>(rows * cols(job)));
    quant::dequantize(job.tensor->type, bytes.data(), rows * cols(job), values.data());
    return backend_.fill(job.weight, row, rows, std::as_bytes(values));
  }

  void fail(Error error, std::exception_ptr thrown) {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
    error_ = std::move(error);
    thrown_ = std::move(thrown);
    failed_ = true;
  }

  const Gguf& file_;
  Backend& backend_;
  std::span<const Job> jobs_;
  const std::int64_t staging_;  // bytes of one thread
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Error error_;
  std::exception_ptr thrown_;
};

// The caller's thread only reports, ten times a second; two readers keep the disk and a core busy.
Result<void> fill_all(const Gguf& file, Backend& backend, std::span<const Job> jobs, const WeightOptions& options) {
  std::uint64_t total = 0;
  for (const Job& job : jobs) total += job.tensor->bytes;
  const int threads = std::clamp(options.threads, 1, 2);
  Filler filler(file, backend, jobs, WeightOptions::kStaging / static_cast<std::size_t>(threads));
  std::atomic<int> running{threads};
  {
    std::vector<std::jthread> readers;
    readers.reserve(static_cast<std::size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      readers.emplace_back([&] {
        filler.work();
        --running;
      });
    }
    while (options.progress && running != 0) {
      options.progress(filler.done(), total);
      for (int i = 0; i < 20 && running != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  auto outcome = filler.outcome();
  if (outcome && options.progress) options.progress(total, total);
  return outcome;
}

}  // namespace

Result<WeightSet> load_weights(const Gguf& file, Backend& backend, std::span<const WeightRequest> requests,
                               const WeightOptions& options) {
  std::vector<Job> jobs;
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (const WeightRequest& request : requests) {
    auto tensor = find(file, request.name, request.rows, request.cols);
    if (!tensor) return tensor.error();
    const DType type = options.expand_to_f32 ? DType::f32 : (*tensor)->type;
    jobs.push_back({*tensor, {type, request.rows, request.cols, nullptr}});
    offsets.push_back(bytes);
    bytes += backend.weight_bytes(type, request.rows, request.cols);
  }
  try {
    WeightSet set;
    set.memory = backend.allocate(bytes);
    for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].weight.data = set.memory.data() + offsets[i];
    if (auto filled = fill_all(file, backend, jobs, options); !filled) return filled.error();
    for (const Job& job : jobs) set.weights.push_back(job.weight);
    return set;
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory for " + std::to_string(bytes) + " bytes of weights"};
  }
}

Result<void> refuse_other_tensors(const Gguf& file, std::vector<std::string> known) {
  std::ranges::sort(known);
  for (const GgufTensor& tensor : file.tensors()) {
    if (std::ranges::binary_search(known, tensor.name)) continue;
    return Error{ErrorCode::unsupported, "tensor " + tensor.name + " has no place in the equations of this " +
                                             "architecture; without it the answers would be wrong"};
  }
  return {};
}

Result<std::vector<float>> load_vector(const Gguf& file, std::string_view name, std::int64_t size) {
  auto tensor = find(file, name, 1, size);
  if (!tensor) return tensor.error();
  std::vector<std::byte> bytes(static_cast<std::size_t>((*tensor)->bytes));
  if (auto read = file.read(**tensor, 0, bytes); !read) return read.error();
  std::vector<float> values(static_cast<std::size_t>(size));
  quant::dequantize((*tensor)->type, bytes.data(), size, values.data());
  if (!std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); })) {
    return Error{ErrorCode::bad_input, "tensor " + std::string(name) + " holds a value that is not finite"};
  }
  return values;
}

}  // namespace troupe
