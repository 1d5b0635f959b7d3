#include "apps/troupe/options.h"

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unistd.h>

#include "runtime/text/builtin_templates.h"

namespace troupe::app {
namespace {

constexpr std::uint64_t kBarFrom = 256'000'000;

Numa numa_of(const std::string& text) {
  return text == "off" ? Numa::off : Numa::interleave;
}

KvType kv_type_of(const std::string& text) {
  return text == "f32" ? KvType::f32 : KvType::f16;
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
  return "'" + value + "' is neither a file with a template nor one of " + names;
}

}  // namespace

void ModelFlags::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "A GGUF file (of a split model: its first part)")->required();
  command.add_option("--isa", isa, "Instruction set: auto, reference, avx2, avx-vnni, avx512, vnni, amx")
      ->capture_default_str();
  command.add_option("--threads", threads, "Compute threads; 0: one a CPU this process may use")
      ->check(CLI::Range(0, 1024));
  command
      .add_option("--numa", numa,
                  "Machines with several memory nodes: interleave (memory on all in turn), off (numactl decides)")
      ->check(CLI::IsMember({"interleave", "off"}))
      ->capture_default_str();
  command.add_option("--context", context, "Tokens a session may hold; 0: what the model was trained for")
      ->check(CLI::Range(0, 1 << 20));
  command.add_option("--kv-memory", kv_megabytes,
                     "Megabytes for keys and values; 0: a quarter of the memory, at most 16 contexts");
  command.add_option("--kv-type", kv_type, "Precision of keys and values: f16, f32")
      ->check(CLI::IsMember({"f16", "f32"}))
      ->capture_default_str();
  command
      .add_option(
          "--chat-template", chat_template,
          "Instead of the file's own: a Jinja file, or chatml, gemma, llama2, llama3, mistral, phi3, qwen, zephyr")
      ->transform(CLI::Validator(read_template, "NAME|FILE"));
}

EngineOptions ModelFlags::engine_options() const {
  EngineOptions options;
  options.isa = isa;
  options.threads = threads;
  options.numa = numa_of(numa);
  options.kv_type = kv_type_of(kv_type);
  options.context = context;
  options.kv_memory = kv_megabytes * 1'000'000;
  options.chat_template = chat_template;
  options.progress = load_progress();
  return options;
}

void SamplingFlags::add_to(CLI::App& command) {
  command.add_option("--temperature", params.temperature, "0: always the likeliest token")->capture_default_str();
  command.add_option("--top-k", params.top_k, "Choose among the k likeliest; 0: all")->capture_default_str();
  command.add_option("--top-p", params.top_p, "Choose among the likeliest with this share together")
      ->capture_default_str();
  command.add_option("--min-p", params.min_p, "Leave out what is less likely than this share of the best")
      ->capture_default_str();
  command.add_option("--repetition-penalty", params.repetition_penalty)->capture_default_str();
  command.add_option("--frequency-penalty", params.frequency_penalty)->capture_default_str();
  command.add_option("--presence-penalty", params.presence_penalty)->capture_default_str();
  command.add_option("--seed", params.seed, "The same seed gives the same tokens, whatever else runs")
      ->capture_default_str();
  command.add_option("-n,--max-tokens", max_tokens, "Tokens of an answer; 0: until the context is full")
      ->capture_default_str();
  command.add_option("--stop", stop, "End the answer at this text (may be given several times)");
}

int complain(const Error& error) {
  std::fprintf(stderr, "troupe: %s\n", error.message.c_str());
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

Result<std::string> read_text(const std::string& path) {
  if (path == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::not_found, path + ": cannot open"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace troupe::app
