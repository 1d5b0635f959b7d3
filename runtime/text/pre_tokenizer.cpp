#include "runtime/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <cstdint>
#include <pcre2.h>

#include "runtime/text/printable.h"
#include "runtime/text/utf8.h"

namespace troupe {
namespace {

// PCRE2's own \s holds U+180E, which is no whitespace since Unicode 6.3: the class is spelled out. The last repeat of
// an alternative is possessive: nothing follows that a shorter one could help, and there is nothing to remember of it.
#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define GPT2_WORDS(digits) "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}++|" digits "| ?[^" SPACE "\\p{L}\\p{N}]++"
#define LLAMA3_WORDS(digits)                                                          \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" digits "| ?[^" SPACE \
  "\\p{L}\\p{N}]++[\\r\\n]*+|[" SPACE "]*[\\r\\n]++"
// A run of whitespace, less its last character where a word follows.
#define SPACES "[" SPACE "]+(?![^" SPACE "])|[" SPACE "]++"

constexpr const char* kGpt2 = GPT2_WORDS(" ?\\p{N}++") "|" SPACES;
// Text between two digits is split as if it stood alone: for whitespace a digit is the end of the text.
constexpr const char* kSmolLm = GPT2_WORDS("\\p{N}") "|[" SPACE "]+(?![^" SPACE "\\p{N}])|[" SPACE "]++";
constexpr const char* kLlama3 = LLAMA3_WORDS("\\p{N}{1,3}+") "|" SPACES;
constexpr const char* kQwen2 = LLAMA3_WORDS("\\p{N}") "|" SPACES;
#undef SPACES
#undef LLAMA3_WORDS
#undef GPT2_WORDS
#undef SPACE

struct Known {
  std::string_view name;
  const char* pattern;
  bool ignores_merges;
};
constexpr Known kKnown[] = {{"", kGpt2, false},         {"default", kGpt2, false},    {"gpt-2", kGpt2, false},
                            {"smollm", kSmolLm, false}, {"llama-bpe", kLlama3, true}, {"qwen2", kQwen2, false}};

struct Free {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

std::size_t ill_formed_prefix(std::string_view text) {
  std::size_t size = 0;
  while (size < text.size() && utf8_character(text.substr(size)) == 0) ++size;
  return size;
}

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, Free> code;
  bool ignores_merges = false;

  std::size_t piece_at(pcre2_match_data* match, std::string_view text, std::size_t from) const;
};

// The end of the piece that begins at `from`; the end of the text if the engine gives up (out of memory, say): the text
// is then whole all the same, in one piece.
std::size_t PreTokenizer::Pattern::piece_at(pcre2_match_data* match, std::string_view text, std::size_t from) const {
  const auto find = [&](std::uint32_t options) {
    return pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                       PCRE2_NO_UTF_CHECK | options, match, nullptr);
  };
  int found = find(0);
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = find(PCRE2_NO_JIT);
  const std::size_t end = found < 0 ? text.size() : pcre2_get_ovector_pointer(match)[1];
  return end > from ? end : text.size();
}

PreTokenizer::PreTokenizer(std::unique_ptr<Pattern> pattern) : pattern_(std::move(pattern)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

bool PreTokenizer::ignores_merges() const {
  return pattern_->ignores_merges;
}

Result<PreTokenizer> PreTokenizer::create(const std::string& name) {
  const Known* known = nullptr;
  for (const Known& candidate : kKnown) {
    if (candidate.name == name) known = &candidate;
  }
  if (known == nullptr) {
    return Error{ErrorCode::unsupported, "the pre-tokenizer '" + printable(name, 60) +
                                             "' (tokenizer.ggml.pre) is not known here; " +
                                             "default, gpt-2, smollm, llama-bpe and qwen2 are. The model can still be "
                                             "used by token ids"};
  }
  int error = 0;
  PCRE2_SIZE place = 0;
  auto pattern = std::make_unique<Pattern>();
  pattern->ignores_merges = known->ignores_merges;
  pattern->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(known->pattern), PCRE2_ZERO_TERMINATED,
                                    PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &place, nullptr));
  if (!pattern->code) return Error{ErrorCode::unsupported, "the PCRE2 library was built without Unicode"};
  // A failure is no error: without JIT (a hardened kernel, say) the interpreter finds the same pieces, more slowly.
  pcre2_jit_compile(pattern->code.get(), PCRE2_JIT_COMPLETE);
  return PreTokenizer(std::move(pattern));
}

void PreTokenizer::split(std::string_view text, const std::function<void(std::string_view)>& piece) const {
  const std::unique_ptr<pcre2_match_data, Free> match(pcre2_match_data_create(1, nullptr));
  while (!text.empty()) {
    const std::string_view part = text.substr(0, utf8_valid_prefix(text));
    for (std::size_t from = 0; from < part.size();) {
      const std::size_t end = match ? pattern_->piece_at(match.get(), part, from) : part.size();
      piece(part.substr(from, end - from));
      from = end;
    }
    text.remove_prefix(part.size());
    const std::size_t ill_formed = ill_formed_prefix(text);
    if (ill_formed > 0) piece(text.substr(0, ill_formed));
    text.remove_prefix(ill_formed);
  }
}

}  // namespace troupe
