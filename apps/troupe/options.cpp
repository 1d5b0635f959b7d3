#include "apps/troupe/options.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <limits>
#include <unistd.h>

#include "runtime/answer.h"
#include "runtime/text/builtin_templates.h"
#include "runtime/text/printable.h"

namespace troupe::app {
namespace {

constexpr std::uint64_t kBarFrom = 256'000'000;
constexpr std::uint64_t kMegabyte = 1'000'000;
constexpr std::size_t kLongestSentence = 8192;  // more than a path may take

Numa numa_of(const std::string& text) {
  return text == "off" ? Numa::off : Numa::interleave;
}

KvType kv_type_of(const std::string& text) {
  return *std::ranges::find_if(kKvTypes, [&](KvType type) { return name(type) == text; });  // the flag's check knew it
}

std::vector<std::string> kv_type_names() {
  std::vector<std::string> names;
  for (KvType type : kKvTypes) names.emplace_back(name(type));
  return names;
}

// Turns the NAME of a built-in template, or a FILE, into the template's source.
std::string read_template(std::string& value) {
  if (const auto known = find_builtin_template(value)) {
    value = *known;
    return "";
  }
  auto source = read_text(value);
  if (source && !source->empty()) {
    value = std::move(*source);
    return "";
  }
  std::string names;
  for (const BuiltinTemplate& one : builtin_templates()) names += (names.empty() ? "" : ", ") + std::string(one.name);
  return "'" + value + "' is none of " + names + ", and no file with a template (" +
         (source ? "it is empty" : source.error().message) + ")";
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names{"auto", "reference"};
  for (Isa isa : kIsas) names.emplace_back(name(isa));
  return names;
}

// A whole number in decimal from 0 to `most`. CLI11's own reading takes -1 for 2^64 - 1, 010 for 8, and what is too
// large for the largest.
CLI::Validator whole_number(std::uint64_t most) {
  const auto read = [most](std::string& text) -> std::string {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc() || stop != end || value > most) {
      return "'" + text + "' is not a whole number from 0 to " + std::to_string(most);
    }
    text = std::to_string(value);
    return "";
  };
  return CLI::Validator(read, "");
}

// The runtime's own check of one field, where the user wrote it; the other fields have their defaults.
template <class Owner, class Value, class Check>
CLI::Validator valid(Value Owner::*field, Check check) {
  const auto read = [field, check](std::string& text) -> std::string {
    Owner owner;
    if (!CLI::detail::lexical_cast(text, owner.*field)) return "'" + text + "' is not a number that can be";
    const Result<void> fine = check(owner);
    return fine ? "" : fine.error().message;
  };
  return CLI::Validator(read, "");
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "A GGUF file (of a split model: its first part)")->required()->check(named());
  add_machine(command);
  command.add_option("--context", context, "Tokens a session may hold; 0: what the model was trained for")
      ->check(CLI::Range(0, 1 << 20));
  command
      .add_option(
          "--kv-type", kv_type,
          "Precision of keys and values: f16, f32, or i8 (half the memory of f16, tokens of nearly its quality)")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  command
      .add_option(
          "--chat-template", chat_template,
          "Instead of the file's own: a Jinja file, or chatml, gemma, llama2, llama3, mistral, phi3, qwen, zephyr")
      ->transform(CLI::Validator(read_template, "NAME|FILE"));
}

void ModelFlags::add_machine(CLI::App& command) {
  command.add_option("--isa", isa, "Instruction set")->check(CLI::IsMember(isa_names()))->capture_default_str();
  command.add_option("--threads", threads, "Compute threads; 0: one a CPU this process may use")
      ->check(CLI::Range(0, 1024));
  command
      .add_option("--numa", numa,
                  "Machines with several memory nodes: interleave (memory on all in turn), off (numactl decides)")
      ->check(CLI::IsMember({"interleave", "off"}))
      ->capture_default_str();
  command
      .add_option("--kv-memory", kv_megabytes,
                  "Megabytes for keys and values; 0: a quarter of the memory, at most 16 contexts")
      ->transform(whole_number(std::numeric_limits<std::uint64_t>::max() / kMegabyte));
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options;
  options.isa = isa;
  options.threads = threads;
  options.numa = numa_of(numa);
  options.kv_type = kv_type_of(kv_type);
  options.context = context;
  options.kv_memory = kv_megabytes * kMegabyte;
  options.chat_template = chat_template;
  options.progress = load_progress();
  return options;
}

void SamplingFlags::add_to(CLI::App& command) {
  const auto add = [&](const char* name, auto SamplingParams::*field, const char* help) {
    command.add_option(name, params.*field, help)
        ->check(valid(field, [](const SamplingParams& given) { return given.validate(0); }))
        ->capture_default_str();
  };
  add("--temperature", &SamplingParams::temperature, "0: always the likeliest token");
  add("--top-k", &SamplingParams::top_k, "Choose among the k likeliest; 0: all");
  add("--top-p", &SamplingParams::top_p, "Choose among the likeliest with this share together");
  add("--min-p", &SamplingParams::min_p, "Leave out what is less likely than this share of the best");
  add("--repetition-penalty", &SamplingParams::repetition_penalty, "");
  add("--frequency-penalty", &SamplingParams::frequency_penalty, "");
  add("--presence-penalty", &SamplingParams::presence_penalty, "");
  add("--typical-p", &SamplingParams::typical_p,
      "Choose among those whose surprise is usual, with this share together");
  add("--dynatemp-range", &SamplingParams::dynatemp_range,
      "Let the temperature vary by so much with the entropy; 0: off");
  add("--dynatemp-exponent", &SamplingParams::dynatemp_exponent, "How it follows the entropy");
  add("--xtc-probability", &SamplingParams::xtc_probability, "How often the likeliest are excluded; 0: never");
  add("--xtc-threshold", &SamplingParams::xtc_threshold, "Excluded are those of this share, but for the last of them");
  add("--mirostat", &SamplingParams::mirostat, "2: hold the surprise at tau, in place of the other cuts; 0: off");
  add("--mirostat-tau", &SamplingParams::mirostat_tau, "The surprise aimed at, in bits");
  add("--mirostat-eta", &SamplingParams::mirostat_eta, "How fast it gets there");
  add("--dry-multiplier", &SamplingParams::dry_multiplier, "Penalty of what would prolong a repetition; 0: off");
  add("--dry-base", &SamplingParams::dry_base, "By what it grows with each repeated token");
  add("--dry-allowed-length", &SamplingParams::dry_allowed_length, "Repeated tokens from which on it counts");
  add_breakers(command);
  command.add_option("--seed", params.seed, "The same seed gives the same tokens, whatever else runs")
      ->transform(whole_number(std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  const auto check_limits = [](const TurnLimits& limits) { return limits.validate(0); };
  command.add_option("-n,--max-tokens", max_tokens, "Tokens of an answer; 0: until the context is full")
      ->check(valid(&TurnLimits::max_tokens, check_limits))
      ->capture_default_str();
  const auto take_stops = [this](const std::vector<std::string>& texts) {
    stop = texts;
    const auto fine = TurnLimits{.stop = texts}.validate(0);
    if (!fine) throw CLI::ValidationError("--stop", fine.error().message);
  };
  command
      .add_option_function<std::vector<std::string>>("--stop", take_stops,
                                                     "End the answer at this text (may be given several times)")
      ->allow_extra_args(false);  // the next word may be MODEL
}

void SamplingFlags::add_breakers(CLI::App& command) {
  const auto take = [this](const std::vector<std::string>& texts) {
    params.dry_sequence_breakers = texts;
    if (texts == std::vector<std::string>{"none"}) params.dry_sequence_breakers.clear();
    SamplingParams given;
    given.dry_sequence_breakers = params.dry_sequence_breakers;
    const auto fine = given.validate(0);
    if (!fine) throw CLI::ValidationError("--dry-sequence-breaker", fine.error().message);
  };
  command
      .add_option_function<std::vector<std::string>>(
          "--dry-sequence-breaker", take,
          "Text that no repetition reaches across (may be given several times; none: there is no such text); "
          "without it: a new line, : \" and *")
      ->allow_extra_args(false);
}

void HostFlags::add_to(CLI::App& command) {
  command
      .add_option("--drafts", drafts,
                  "Tokens that a session may guess ahead from what was said before; the same answers in fewer "
                  "launches where text repeats itself; 0: none")
      ->check(CLI::Range(0, HostOptions::kMostDrafts))
      ->capture_default_str();
  command
      .add_option("--draft", draft,
                  "A smaller model (GGUF) with the same tokens, which guesses too, where that makes answers faster; "
                  "they stay the same (with --drafts 0 it guesses up to " +
                      std::to_string(HostOptions::guesses(0, true)) + ")")
      ->check(named());
  command
      .add_option(
          "--record", record,
          "A new file in which every decision of the batcher is kept, for troupe replay; it holds what is said, "
          "as tokens, and is readable by its owner only")
      ->check(named());
}

void WindowFlags::add_to(CLI::App& command) {
  command
      .add_option("--window", window.tokens,
                  "Go on without end: when so many tokens are seen, drop the older half; 0: end with the context")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--sinks", window.sinks, "With --window: the first tokens, which are never dropped")
      ->check(CLI::Range(0, 1 << 19))
      ->capture_default_str();
}

Result<Host> open_host(const ModelFlags& model, const HostFlags& host) {
  HostOptions options;
  options.engine = model.engine_options();
  options.drafts = host.drafts;
  options.draft = host.draft;
  options.record = host.record;
  return Host::open(model.model, options);
}

CLI::Validator named() {
  return CLI::Validator([](std::string& text) { return std::string(text.empty() ? "the name is empty" : ""); }, "");
}

int complain(const Error& error) {
  std::fprintf(stderr, "troupe: %s\n", printable(error.message, kLongestSentence).c_str());
  return 1;
}

std::function<void(std::uint64_t, std::uint64_t)> load_progress() {
  if (::isatty(STDERR_FILENO) == 0) return {};
  return [began = std::chrono::steady_clock::now()](std::uint64_t done, std::uint64_t total) {
    if (total < kBarFrom) return;
    constexpr int kWidth = 30;
    const int filled = static_cast<int>(kWidth * done / total);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const double rate = seconds > 0 ? static_cast<double>(done) / 1e9 / seconds : 0.0;
    std::fprintf(stderr, "\rloading [%.*s%*s] %5.1f %% %5.2f GB/s%s", filled, "##############################",
                 kWidth - filled, "", 100.0 * static_cast<double>(done) / static_cast<double>(total), rate,
                 done == total ? "\n" : "");
    std::fflush(stderr);
  };
}

}  // namespace troupe::app
