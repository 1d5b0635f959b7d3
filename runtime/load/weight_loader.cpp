#include "runtime/load/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <thread>

#include "kernels/quant/formats.h"

namespace troupe {
namespace {

std::string shape(std::int64_t rows, std::int64_t cols) {
  return "[" + std::to_string(rows) + " x " + std::to_string(cols) + "]";
}

Result<const GgufTensor*> find(const Gguf& file, std::string_view name, std::int64_t rows, std::int64_t cols) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) return Error{ErrorCode::bad_input, "tensor " + std::string(name) + " is missing"};
  if (tensor->rows != rows || tensor->cols != cols) {
    return Error{ErrorCode::bad_input, "tensor " + std::string(name) + " has shape " +
                                           shape(tensor->rows, tensor->cols) + "; the metadata asks for " +
                                           shape(rows, cols)};
  }
  return tensor;
}

struct Job {
  const GgufTensor* tensor;
  PreparedWeight weight;
};

// Reads and lays out one matrix after another; several of these share the jobs.
class Filler {
 public:
  Filler(const Gguf& file, Backend& backend, std::span<const Job> jobs, const WeightOptions& options)
      : file_(file), backend_(backend), jobs_(jobs), options_(options) {}

  void work(std::size_t staging_bytes) {
    std::vector<std::byte> staging;
    std::vector<float> expanded;
    for (std::size_t i = next_++; i < jobs_.size() && !failed_; i = next_++) {
      if (auto filled = fill(jobs_[i], staging_bytes, staging, expanded); !filled) fail(filled.error());
    }
  }

  std::uint64_t done() const { return done_; }
  std::optional<Error> error() const { return error_; }

 private:
  Result<void> fill(const Job& job, std::size_t staging_bytes, std::vector<std::byte>& staging,
                    std::vector<float>& expanded) {
    const std::int64_t row_bytes = static_cast<std::int64_t>(job.tensor->bytes) / job.tensor->rows;
    // When expanding, the float copy shares the allowance: one file byte may become up to eight.
    const std::int64_t cost = options_.expand_to_f32 ? row_bytes + 4 * job.tensor->cols : row_bytes;
    const std::int64_t step = std::max<std::int64_t>(16, static_cast<std::int64_t>(staging_bytes) / cost / 16 * 16);
    for (std::int64_t row = 0; row < job.tensor->rows && !failed_; row += step) {
      const std::int64_t rows = std::min(step, job.tensor->rows - row);
      staging.resize(static_cast<std::size_t>(rows * row_bytes));
      if (auto read = file_.read(*job.tensor, static_cast<std::uint64_t>(row * row_bytes), staging); !read) return read;
      if (auto placed = place(job, row, rows, staging, expanded); !placed) {
        return Error{placed.error().code, "tensor " + job.tensor->name + ": " + placed.error().message};
      }
      done_ += staging.size();
    }
    return {};
  }

  Result<void> place(const Job& job, std::int64_t row, std::int64_t rows, std::span<const std::byte> bytes,
                     std::vector<float>& expanded) {
    if (job.weight.type == job.tensor->type) return backend_.fill(job.weight, row, rows, bytes);
    expanded.resize(static_cast<std::size_t>(rows * job.tensor->cols));
    quant::dequantize(job.tensor->type, bytes.data(), rows * job.tensor->cols, expanded.data());
    return backend_.fill(job.weight, row, rows, std::as_bytes(std::span<const float>(expanded)));
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
    failed_ = true;
  }

  const Gguf& file_;
  Backend& backend_;
  std::span<const Job> jobs_;
  const WeightOptions& options_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::optional<Error> error_;
};

// The caller's thread only reports, ten times a second; two readers keep the disk and a core busy.
Result<void> fill_all(const Gguf& file, Backend& backend, std::span<const Job> jobs, const WeightOptions& options) {
  std::uint64_t total = 0;
  for (const Job& job : jobs) total += job.tensor->bytes;
  Filler filler(file, backend, jobs, options);
  const int threads = std::clamp(options.threads, 1, 2);
  std::atomic<int> running{threads};
  {
    std::vector<std::jthread> readers;
    for (int i = 0; i < threads; ++i) {
      readers.emplace_back([&] {
        filler.work(WeightOptions::kStaging / static_cast<std::size_t>(threads));
        if (--running == 0) running.notify_all();
      });
    }
    if (!options.progress) {
      for (int left = running; left != 0; left = running) running.wait(left);
    }
    while (options.progress && running != 0) {
      options.progress(filler.done(), total);
      for (int i = 0; i < 20 && running != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  if (auto error = filler.error()) return *error;
  if (options.progress) options.progress(total, total);
  return {};
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
  WeightSet set;
  try {
    set.memory = backend.allocate(bytes);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, "no memory for " + std::to_string(bytes) + " bytes of weights"};
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].weight.data = set.memory.data() + offsets[i];
  if (auto filled = fill_all(file, backend, jobs, options); !filled) return filled.error();
  for (const Job& job : jobs) set.weights.push_back(job.weight);
  return set;
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
