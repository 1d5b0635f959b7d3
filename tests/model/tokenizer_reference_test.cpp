// The default model's tokenizer against values of independent programs (tests/data/reference: `tokenizers` 0.23.3 and
// llama.cpp b11549). TROUPE_MODEL names the model file.
#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/load/vocabulary_data.h"
#include "runtime/text/detokenizer.h"
#include "runtime/text/tokenizer.h"

namespace troupe {
namespace {

using nlohmann::json;

class TokenizerReference : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* path = std::getenv("TROUPE_MODEL");
    ASSERT_NE(path, nullptr) << "set TROUPE_MODEL to the default model's file";
    auto file = Gguf::open(path);
    ASSERT_TRUE(file) << file.error().message;
    auto data = read_vocabulary(*file);
    ASSERT_TRUE(data) << data.error().message;
    auto read = Vocabulary::create(std::move(*data));
    ASSERT_TRUE(read) << read.error().message;
    vocabulary_ = std::make_shared<const Vocabulary>(std::move(*read));
  }
  static void TearDownTestSuite() { vocabulary_.reset(); }
  void SetUp() override { ASSERT_NE(vocabulary_, nullptr); }

  static std::vector<json> rows(const std::string& name) {
    std::ifstream file(TROUPE_TEST_DATA "/reference/" + name);
    std::vector<json> out;
    for (std::string line; std::getline(file, line);) out.push_back(json::parse(line));
    return out;
  }

  static std::shared_ptr<const Vocabulary> vocabulary_;
};

std::shared_ptr<const Vocabulary> TokenizerReference::vocabulary_;

std::string from_hex(const std::string& hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return out;
}

TEST_F(TokenizerReference, encodes_every_row_to_the_same_ids) {
  auto tokenizer = Tokenizer::create(vocabulary_);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  int agreed = 0, disputed = 0;
  for (const json& row : rows("tokenizer.jsonl")) {
    const bool parse = row["parse_special"];
    const auto ids =
        (*tokenizer)
            .encode(row["text"].get<std::string>(), parse ? Tokenizer::Specials::parse : Tokenizer::Specials::as_text);
    const auto expected = row["ids"].get<std::vector<TokenId>>();
    if (row["llamacpp_agrees"]) {
      ++agreed;
      EXPECT_EQ(ids, expected) << row["text"];
    } else {
      // The two programs differ: bytes without a token, and digits younger than one's Unicode tables.
      ++disputed;
      EXPECT_TRUE(ids == expected || ids == row["llamacpp_ids"].get<std::vector<TokenId>>()) << row["text"];
    }
  }
  EXPECT_EQ(agreed, 1862);
  EXPECT_EQ(disputed, 17);
}

TEST_F(TokenizerReference, drops_a_byte_without_a_token_before_the_merges) {
  auto tokenizer = Tokenizer::create(vocabulary_);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  const auto ids = (*tokenizer).encode(" .\x04.", Tokenizer::Specials::as_text);
  EXPECT_EQ(detokenize(*vocabulary_, ids, ControlTokens::write), " ..");
  EXPECT_EQ(ids.size(), 1u);
}

TEST_F(TokenizerReference, detokenizes_every_row_to_the_same_bytes) {
  const auto all = rows("detokenize.jsonl");
  EXPECT_EQ(all.size(), 460u);
  for (const json& row : all) {
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    const std::string whole = from_hex(row["hex"]);
    EXPECT_EQ(detokenize(*vocabulary_, ids, ControlTokens::write), whole) << row["n"];
    const std::string skipped = row["hex_skip_special"].is_null() ? whole : from_hex(row["hex_skip_special"]);
    EXPECT_EQ(detokenize(*vocabulary_, ids, ControlTokens::skip), skipped) << row["n"];
    for (std::size_t i = 0; row.contains("pieces_hex") && i < ids.size(); ++i) {
      EXPECT_EQ(vocabulary_->bytes(ids[i]), from_hex(row["pieces_hex"][i])) << row["n"] << " token " << i;
    }
  }
}

TEST_F(TokenizerReference, streams_every_row_to_the_same_characters) {
  for (const json& row : rows("detokenize.jsonl")) {
    Detokenizer detokenizer(vocabulary_, ControlTokens::write);
    std::string out;
    for (TokenId id : row["ids"]) {
      const std::string released = detokenizer.push(id);
      EXPECT_EQ(utf8_valid_prefix(released), released.size()) << row["n"];
      out += released;
    }
    out += detokenizer.flush();
    EXPECT_EQ(out, row["hf_text"].get<std::string>()) << row["n"];
  }
}

TEST_F(TokenizerReference, an_answer_ends_at_the_mark_of_a_turn) {
  EXPECT_EQ(vocabulary_->size(), 49152);
  const auto end = vocabulary_->eos();
  ASSERT_TRUE(end);
  EXPECT_EQ(vocabulary_->bytes(*end), "<|im_end|>");
  EXPECT_TRUE(vocabulary_->ends_answer(*end));
}

}  // namespace
}  // namespace troupe
