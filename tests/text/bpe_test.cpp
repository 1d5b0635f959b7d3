#include "runtime/text/bpe.h"

#include <gmock/gmock.h>
#include <map>

#include "tests/support/test_scale.h"
#include "tests/text/text_data.h"

namespace troupe {
namespace {

using test::Random;

// The definition: join the leftmost of the neighbours with the lowest rank, again and again.
std::vector<TokenId> by_definition(const Vocabulary& vocabulary, std::string_view text) {
  std::map<std::pair<TokenId, TokenId>, std::size_t> ranks;
  for (std::size_t i = 0; i < vocabulary.merges().size(); ++i) {
    ranks.emplace(std::pair(vocabulary.merges()[i].left, vocabulary.merges()[i].right), i);
  }
  std::vector<TokenId> ids;
  for (char c : text) {
    if (auto id = vocabulary.find({&c, 1})) ids.push_back(*id);
  }
  while (true) {
    std::size_t best = vocabulary.merges().size(), place = 0;
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = ranks.find({ids[i], ids[i + 1]});
      if (found != ranks.end() && found->second < best) best = found->second, place = i;
    }
    if (best == vocabulary.merges().size()) return ids;
    ids[place] = vocabulary.merges()[best].joined;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

std::vector<TokenId> encode(const Bpe& bpe, std::string_view text, std::size_t block = Bpe::kBlock) {
  Bpe::Scratch scratch;
  std::vector<TokenId> ids;
  bpe.encode(text, scratch, ids, block);
  return ids;
}

TEST(Bpe, equals_the_definition_for_any_merges_in_any_blocks) {
  Random random(1);
  const int rounds = test::small_scale() ? 30 : 300;
  for (int round = 0; round < rounds; ++round) {
    const int letters = 1 + static_cast<int>(random.below(4));
    const auto vocabulary = test::make_vocabulary(test::random_merges(
        random, letters, 1 + static_cast<int>(random.below(letters == 1 ? 12 : 60)), round % 2 == 0));
    const Bpe bpe(*vocabulary);
    // One letter more than the vocabulary has: bytes without a token are dropped before the merges.
    const auto alphabet = std::string_view("abcde").substr(0, static_cast<std::size_t>(letters) + 1);
    const std::string text = test::random_text(random, alphabet, static_cast<std::size_t>(random.below(400)));
    const auto expected = by_definition(*vocabulary, text);
    for (std::size_t block : {std::size_t{1}, std::size_t{8}, std::size_t{33}, std::size_t{64}, Bpe::kBlock}) {
      ASSERT_EQ(encode(bpe, text, block), expected) << "round " << round << " block " << block << " text " << text;
    }
  }
}

TEST(Bpe, appends_to_what_is_there) {
  const auto vocabulary = test::make_vocabulary(test::small_vocabulary_data("gpt-2"));
  const Bpe bpe(*vocabulary);
  Bpe::Scratch scratch;
  std::vector<TokenId> ids = {7};
  bpe.encode("the", scratch, ids);
  bpe.encode("", scratch, ids);
  bpe.encode("river", scratch, ids, 2);  // blocks so small that they are done again
  auto expected = encode(bpe, "the");
  expected.insert(expected.begin(), 7);
  for (TokenId id : encode(bpe, "river")) expected.push_back(id);
  EXPECT_EQ(ids, expected);
}

TEST(Bpe, a_pair_that_stands_twice_has_the_lower_rank) {
  VocabularyData data;
  data.model = "gpt2";
  data.pieces = {"a", "b", "c", "ab", "bc"};
  data.kinds.assign(5, TokenKind::normal);
  data.merges = {"a b", "b c", "a b"};
  EXPECT_THAT(encode(Bpe(*test::make_vocabulary(data)), "abc"), ::testing::ElementsAre(3, 2));
}

// Counted, not timed: pairs queued. Twice the margin of a linear cost is still far from a quadratic one's 16.
TEST(Bpe, work_is_linear_in_the_length_of_a_piece) {
  const auto vocabulary = test::make_vocabulary(test::small_vocabulary_data("gpt-2"));
  const Bpe bpe(*vocabulary);
  const std::size_t quarter = test::small_scale() ? 32 * 1024 : 256 * 1024;
  for (const char* unit : {"a", " ", "=", "\xf0\x9f\x98\x80", "conversation", "ab", "\n \n"}) {
    std::string text;
    while (text.size() < 4 * quarter) text += unit;
    Bpe::Scratch one, four;
    std::vector<TokenId> ids;
    bpe.encode(std::string_view(text).substr(0, quarter), one, ids);
    bpe.encode(std::string_view(text).substr(0, 4 * quarter), four, ids);
    EXPECT_LE(four.offers, 4.2 * static_cast<double>(one.offers)) << unit;
    EXPECT_LE(four.offers, 16 * quarter) << unit;
    EXPECT_LE(four.symbols.capacity() * sizeof(Bpe::Scratch::Symbol), 512u * 1024u) << unit;
  }
}

}  // namespace
}  // namespace troupe
