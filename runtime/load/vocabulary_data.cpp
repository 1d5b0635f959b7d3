#include "runtime/load/vocabulary_data.h"

namespace troupe {
namespace {

Result<std::optional<TokenId>> token_id(const Gguf& file, std::string_view key) {
  if (file.find(key) == nullptr) return std::optional<TokenId>();
  auto value = file.get_uint(key);
  if (!value) return value.error();
  if (*value > 0x7fffffff) return Error{ErrorCode::bad_input, std::string(key) + " is " + std::to_string(*value)};
  return std::optional<TokenId>(static_cast<TokenId>(*value));
}

Result<std::vector<TokenKind>> kinds(const Gguf& file, std::size_t tokens) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  const GgufValue* value = file.find(kKey);
  if (value == nullptr) return std::vector<TokenKind>(tokens, TokenKind::normal);
  const auto* array = std::get_if<GgufArray>(&value->value);
  const auto* numbers = array ? std::get_if<std::vector<std::int64_t>>(&array->values) : nullptr;
  if (numbers == nullptr) return Error{ErrorCode::bad_input, std::string(kKey) + " is not an array of i32"};
  std::vector<TokenKind> out;
  for (std::int64_t number : *numbers) {
    if (number < 1 || number > 6) {
      return Error{ErrorCode::bad_input, std::string(kKey) + "[" + std::to_string(out.size()) + "] is " +
                                             std::to_string(number) + "; 1 to 6 exist"};
    }
    out.push_back(static_cast<TokenKind>(number));
  }
  return out;
}

}  // namespace

Result<VocabularyData> read_vocabulary(const Gguf& file) {
  VocabularyData data;
  auto model = file.get_string("tokenizer.ggml.model");
  if (!model) return model.error();
  data.model = *model;
  if (file.find("tokenizer.ggml.pre") != nullptr) {
    auto pre = file.get_string("tokenizer.ggml.pre");
    if (!pre) return pre.error();
    data.pre = *pre;
  }
  auto pieces = file.get_strings("tokenizer.ggml.tokens");
  if (!pieces) return pieces.error();
  data.pieces = **pieces;
  auto token_kinds = kinds(file, data.pieces.size());
  if (!token_kinds) return token_kinds.error();
  data.kinds = std::move(*token_kinds);
  if (file.find("tokenizer.ggml.merges") != nullptr) {
    auto merges = file.get_strings("tokenizer.ggml.merges");
    if (!merges) return merges.error();
    data.merges = **merges;
  }
  const std::pair<const char*, std::optional<TokenId>*> ids[] = {
      {"tokenizer.ggml.bos_token_id", &data.bos},         {"tokenizer.ggml.eos_token_id", &data.eos},
      {"tokenizer.ggml.eot_token_id", &data.eot},         {"tokenizer.ggml.eom_token_id", &data.eom},
      {"tokenizer.ggml.unknown_token_id", &data.unknown}, {"tokenizer.ggml.padding_token_id", &data.padding}};
  for (const auto& [key, place] : ids) {
    auto id = token_id(file, key);
    if (!id) return id.error();
    *place = *id;
  }
  if (file.find("tokenizer.ggml.add_bos_token") != nullptr) {
    auto add = file.get_bool("tokenizer.ggml.add_bos_token");
    if (!add) return add.error();
    data.add_bos = *add;
  }
  return data;
}

}  // namespace troupe
