#include "runtime/engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "kernels/check.h"
#include "kernels/math.h"
#include "runtime/draws.h"
#include "runtime/fingerprint.h"
#include "runtime/memory_limit.h"

namespace troupe {
namespace {

constexpr std::int64_t kDefaultContexts = 16;

std::uint64_t default_kv_memory(const KvLayout& layout, std::int64_t context) {
  const std::uint64_t contexts =
      static_cast<std::uint64_t>(pages_for(context)) * layout.page_bytes() * kDefaultContexts;
  return std::min(contexts, memory_limit() / 4);
}

std::string megabytes(std::uint64_t bytes) {
  return std::to_string((bytes + 500'000) / 1'000'000) + " MB";
}

}  // namespace

struct Engine::Parts {
  EngineOptions options;
  std::shared_ptr<Backend> backend;  // shared with an engine beside
  std::unique_ptr<Model> model;
  TextSide text;
  KvLayout layout;
  std::shared_ptr<PagePool> pages;
  std::int64_t context = 0;
  std::uint64_t fingerprint = 0;
  Backend::Limits limits;       // of all that runs on the backend
  std::int64_t page_count = 0;  // 0: as many as the options' memory holds

  // Scratch of one launch, allocated once.
  Buffer activation_memory, logits_memory;
  Activations act;
  float* logits = nullptr;  // [max_rows][vocabulary], grown by need: a launch rarely samples all its rows
  std::int64_t logits_rows = 0;
  std::vector<std::int32_t> tokens, positions, head_rows;
  std::vector<SequenceView> sequences;
  std::vector<std::byte*> written;  // the first page that each slice writes
  std::vector<std::uint8_t> faulty;
  std::vector<DrawRows> draw_rows;
  std::unique_ptr<Draws> draws;

  // One writer, run(); no lock, as nothing in a launch may wait for a reader.
  std::atomic<std::uint64_t> launches_run{0}, rows_computed{0}, tokens_sampled{0};
  std::atomic<double> seconds_spent{0.0};

  Result<void> load(const std::string& path);
  Result<void> make_pool();
  void make_scratch();
  void check(std::span<const Slice> batch);
  BatchView gather(std::span<const Slice> batch);
  void want_logits(std::int64_t rows);
  void compute_logits(std::span<Slice> batch, const BatchView& view);
  void hand_out(std::span<Slice> batch, const BatchView& view);
  std::int32_t drafts_to_verify(const Slice& slice, const SequenceView& sequence) const;
  void mark_faults(std::span<Slice> batch, const BatchView& view);
};

Result<void> Engine::Parts::load(const std::string& path) {
  auto file = Gguf::open(path);
  if (!file) return file.error();
  // A failed read names its file already.
  const auto in_file = [&](const Error& error) {
    return Error{error.code, (error.message.find(path) == std::string::npos ? path + ": " : "") + error.message};
  };
  auto side = read_text_side(*file, options.chat_template);
  if (!side) return in_file(side.error());
  text = std::move(*side);
  auto loaded = load_model(*file, *backend, {options.context, options.expand_to_f32, 2, options.progress});
  if (!loaded) return in_file(loaded.error());
  model = std::move(*loaded);
  const ModelShape& shape = model->shape();
  if (text.vocabulary->size() != shape.vocabulary) {
    return in_file({ErrorCode::bad_input, "the vocabulary has " + std::to_string(text.vocabulary->size()) +
                                              " tokens, token_embd.weight " + std::to_string(shape.vocabulary) +
                                              " rows"});
  }
  fingerprint = troupe::fingerprint(*file) ^ shape.fingerprint ^ (kNumericsVersion << 8) ^
                static_cast<std::uint64_t>(options.kv_type) ^ (options.expand_to_f32 ? 16u : 0u);
  context = options.context > 0 ? options.context : shape.context;
  return {};
}

Result<void> Engine::Parts::make_pool() {
  const ModelShape& shape = model->shape();
  layout = {static_cast<int>(shape.layers), static_cast<int>(shape.kv_heads), static_cast<int>(shape.head_dim),
            options.kv_type};
  const std::uint64_t bytes = page_count > 0          ? static_cast<std::uint64_t>(page_count) * layout.page_bytes()
                              : options.kv_memory > 0 ? options.kv_memory
                                                      : default_kv_memory(layout, context);
  const std::int64_t count = static_cast<std::int64_t>(bytes / layout.page_bytes());
  if (count < 1) {
    return Error{ErrorCode::out_of_memory, "KV memory of " + std::to_string(bytes) +
                                               " bytes holds no page; one takes " +
                                               std::to_string(layout.page_bytes()) + " bytes"};
  }
  try {
    Buffer memory = backend->allocate(static_cast<std::size_t>(count) * layout.page_bytes());
    pages = std::make_shared<PagePool>(std::move(memory), layout, count, options.poison_pages);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory,
                 "no memory for a KV pool of " + megabytes(bytes) + ": give less with --kv-memory"};
  }
  return {};
}

void Engine::Parts::make_scratch() {
  const ModelShape& s = model->shape();
  const std::int64_t rows = options.max_rows, q = s.heads * s.head_dim, kv = s.kv_heads * s.head_dim;
  const std::int64_t per_row = s.width + 2 * q + 2 * kv + s.ffn;
  activation_memory = backend->allocate(static_cast<std::size_t>(rows * per_row) * sizeof(float));
  float* next = reinterpret_cast<float*>(activation_memory.data());
  const auto carve = [&](std::int64_t cols) { return std::exchange(next, next + rows * cols); };
  act = {carve(s.width), carve(q), carve(kv), carve(kv), carve(q), carve(s.ffn)};
  limits = {std::max(limits.rows, rows), std::max({limits.widest, s.width, s.ffn, q}), std::max(limits.heads, s.heads),
            std::max(limits.head_dim, s.head_dim), std::max(limits.vocabulary, s.vocabulary)};
  backend->reserve(limits);
  const auto most = static_cast<std::size_t>(rows);
  for (auto* list : {&tokens, &positions, &head_rows}) list->reserve(most);
  faulty.reserve(most);
  sequences.reserve(most);
  written.reserve(most);
  draw_rows.reserve(most);
  draws = std::make_unique<Draws>(*backend, text.vocabulary, rows);
  want_logits(std::min<std::int64_t>(16, rows));
}

// The old memory goes first: two of them may be a lot (512 rows of 128k tokens are 262 MB). If none comes, the next
// launch asks again.
void Engine::Parts::want_logits(std::int64_t rows) {
  if (rows <= logits_rows) return;
  const std::int64_t grown = std::max(rows, std::min(2 * logits_rows, options.max_rows));
  logits_rows = 0;
  logits_memory = Buffer();
  logits_memory = backend->allocate(static_cast<std::size_t>(grown * model->shape().vocabulary) * sizeof(float));
  logits = reinterpret_cast<float*>(logits_memory.data());
  logits_rows = grown;
}

void Engine::Parts::check(std::span<const Slice> batch) {
  std::int64_t rows = 0;
  written.clear();
  for (const Slice& slice : batch) {
    TROUPE_CHECK(!slice.tokens.empty() && slice.cache != nullptr && slice.position >= 0);
    const auto size = static_cast<std::int64_t>(slice.tokens.size());
    TROUPE_CHECK(slice.position + size <= std::min(slice.cache->capacity(), context));
    TROUPE_CHECK(!slice.wants_token || slice.sampling != nullptr);
    TROUPE_CHECK(slice.drafts == 0 || (slice.wants_token && slice.drafts > 0 && slice.drafts < size));
    TROUPE_CHECK(std::ssize(slice.after) >= slice.drafts);
    TROUPE_CHECK(slice.logits.empty() || std::ssize(slice.logits) == size * model->shape().vocabulary);
    for (TokenId token : slice.tokens) TROUPE_CHECK(token >= 0 && token < model->shape().vocabulary);
    written.push_back(slice.cache->pages()[slice.position / KvLayout::kPageTokens]);
    rows += size;
  }
  TROUPE_CHECK(rows >= 1 && rows <= options.max_rows);
  // Two slices that write the same page are two slices of one sequence.
  std::ranges::sort(written);
  TROUPE_CHECK(std::ranges::adjacent_find(written) == written.end());
}

BatchView Engine::Parts::gather(std::span<const Slice> batch) {
  tokens.clear();
  positions.clear();
  sequences.clear();
  for (const Slice& slice : batch) {
    if (slice.position == slice.cache->position()) slice.cache->copy_shared_page();
    const auto first = static_cast<std::int32_t>(tokens.size());
    const auto rows = static_cast<std::int32_t>(slice.tokens.size());
    sequences.push_back({slice.cache->pages(), first, rows, static_cast<std::int32_t>(slice.position)});
    tokens.insert(tokens.end(), slice.tokens.begin(), slice.tokens.end());
    for (std::int32_t i = 0; i < rows; ++i) positions.push_back(static_cast<std::int32_t>(slice.position) + i);
  }
  faulty.assign(tokens.size(), 0);
  return {tokens, positions, sequences, faulty};
}

// The head runs for rows that want it only: the last known one and the guesses of a slice that samples, all of one that
// asked for logits.
void Engine::Parts::compute_logits(std::span<Slice> batch, const BatchView& view) {
  head_rows.clear();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const SequenceView& sequence = view.sequences[i];
    if (!batch[i].logits.empty()) {
      for (std::int32_t r = 0; r < sequence.rows; ++r) head_rows.push_back(sequence.first_row + r);
    } else if (batch[i].wants_token) {
      for (std::int32_t r = sequence.rows - 1 - batch[i].drafts; r < sequence.rows; ++r)
        head_rows.push_back(sequence.first_row + r);
    }
  }
  if (head_rows.empty()) return;
  want_logits(static_cast<std::int64_t>(head_rows.size()));
  model->logits(*backend, view, head_rows, act.h, logits);
}

// A row of a guess fails nobody: where the guess was right the next step computes it again, and fails.
void Engine::Parts::mark_faults(std::span<Slice> batch, const BatchView& view) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const SequenceView& sequence = view.sequences[i];
    const auto first = faulty.begin() + sequence.first_row, last = first + sequence.rows - batch[i].drafts;
    const auto bad = std::find(first, last, std::uint8_t{1});
    if (bad == last) continue;
    batch[i].failed = true;
    batch[i].failure = "the model computed a value that is not finite at position " +
                       std::to_string(sequence.position + (bad - first));
  }
}

// The guesses whose rows are sound, up to the first that is not.
std::int32_t Engine::Parts::drafts_to_verify(const Slice& slice, const SequenceView& sequence) const {
  const auto last = faulty.begin() + sequence.first_row + sequence.rows, first = last - slice.drafts;
  return static_cast<std::int32_t>(std::find(first, last, std::uint8_t{1}) - first);
}

// Hands out what compute_logits() left, in its order: copies to those who asked, rows to choose from for each slice
// that samples.
void Engine::Parts::hand_out(std::span<Slice> batch, const BatchView& view) {
  const std::int64_t vocabulary = model->shape().vocabulary;
  draw_rows.clear();
  float* row = logits;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Slice& slice = batch[i];
    const std::int64_t choices = slice.wants_token ? 1 + slice.drafts : 0;
    std::copy_n(row, slice.logits.size(), slice.logits.begin());
    row += (slice.logits.empty() ? choices : std::ssize(slice.tokens)) * vocabulary;
    if (!slice.wants_token || slice.failed) continue;
    draw_rows.push_back({&slice, row - choices * vocabulary, drafts_to_verify(slice, view.sequences[i])});
  }
}

Engine::Engine(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::open(const std::string& path, const EngineOptions& options) {
  auto backend = make_backend(options.isa, options.threads, options.numa);
  if (!backend) return backend.error();
  return open_on(std::move(*backend), path, options);
}

Result<std::unique_ptr<Engine>> Engine::open_on(std::unique_ptr<Backend> backend, const std::string& path,
                                                const EngineOptions& options) {
  if (options.max_rows < 1 || options.max_rows > 4096) {
    return Error{ErrorCode::bad_input, "max_rows is " + std::to_string(options.max_rows) + "; 1 to 4096 are possible"};
  }
  if (options.context < 0 || options.context > (std::int64_t{1} << 20)) {
    return Error{ErrorCode::bad_input,
                 "the context is " + std::to_string(options.context) + "; 0 (the model's own) to 1048576 are possible"};
  }
  auto parts = std::make_unique<Parts>();
  parts->options = options;
  parts->backend = std::move(backend);
  return open_parts(std::move(parts), path);
}

Result<std::unique_ptr<Engine>> Engine::open_beside(const std::string& path) const {
  auto parts = std::make_unique<Parts>();
  parts->options = parts_->options;
  parts->options.context = 0;
  parts->options.chat_template.clear();
  parts->backend = parts_->backend;
  parts->limits = parts_->limits;
  parts->page_count = pages()->total();
  auto engine = open_parts(std::move(parts), path);
  if (engine) (*engine)->parts_->context = std::min((*engine)->context(), context());
  return engine;
}

Result<std::unique_ptr<Engine>> Engine::open_parts(std::unique_ptr<Parts> parts, const std::string& path) {
  try {
    if (auto loaded = parts->load(path); !loaded) return loaded.error();
    if (auto made = parts->make_pool(); !made) return made.error();
    parts->make_scratch();
    return std::unique_ptr<Engine>(new Engine(std::move(parts)));
  } catch (const std::bad_alloc&) {  // the large pieces say more themselves
    return Error{ErrorCode::out_of_memory, path + ": the system has not enough memory to open this model"};
  } catch (const std::system_error& refused) {
    return Error{ErrorCode::io, path + ": cannot be opened: " + refused.what()};
  }
}

const ModelShape& Engine::shape() const {
  return parts_->model->shape();
}
const TextSide& Engine::text() const {
  return parts_->text;
}
std::int64_t Engine::context() const {
  return parts_->context;
}
std::int64_t Engine::max_rows() const {
  return parts_->options.max_rows;
}
std::uint64_t Engine::fingerprint() const {
  return parts_->fingerprint;
}
const std::shared_ptr<PagePool>& Engine::pages() const {
  return parts_->pages;
}

std::string Engine::describe() const {
  const ModelShape& s = shape();
  return s.architecture + ", " + std::to_string(s.layers) + " layers of width " + std::to_string(s.width) +
         ", weights " + megabytes(s.weight_bytes) + ", context " + std::to_string(parts_->context) + ", KV memory " +
         megabytes(static_cast<std::uint64_t>(parts_->pages->total()) * parts_->layout.page_bytes()) + " (" +
         std::to_string(parts_->pages->total() * KvLayout::kPageTokens) + " tokens in " + name(parts_->layout.type) +
         "), " + parts_->backend->describe();
}

EngineCounters Engine::counters() const {
  return {parts_->launches_run, parts_->rows_computed, parts_->tokens_sampled, parts_->seconds_spent};
}

void Engine::run(std::span<Slice> batch) {
  const auto began = std::chrono::steady_clock::now();
  parts_->check(batch);
  const BatchView view = parts_->gather(batch);
  parts_->model->forward(*parts_->backend, view, parts_->layout, parts_->act);
  parts_->compute_logits(batch, view);
  parts_->mark_faults(batch, view);
  parts_->hand_out(batch, view);
  const std::size_t chosen = parts_->draws->run(parts_->draw_rows);
  parts_->launches_run += 1;
  parts_->rows_computed += static_cast<std::uint64_t>(view.rows());
  parts_->tokens_sampled += chosen;
  parts_->seconds_spent += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

}  // namespace troupe
