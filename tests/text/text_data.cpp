#include "tests/text/text_data.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace troupe::test {

VocabularyData small_vocabulary_data(const std::string& pre) {
  std::ifstream file(TROUPE_TEST_DATA "/tokenizer/vocabulary.json");
  const nlohmann::json json = nlohmann::json::parse(file);
  VocabularyData data;
  data.model = "gpt2";
  data.pre = pre;
  data.pieces = json["pieces"].get<std::vector<std::string>>();
  for (int kind : json["kinds"]) data.kinds.push_back(static_cast<TokenKind>(kind));
  data.merges = json["merges"].get<std::vector<std::string>>();
  return data;
}

std::shared_ptr<const Vocabulary> make_vocabulary(VocabularyData data) {
  auto vocabulary = Vocabulary::create(std::move(data));
  return std::make_shared<const Vocabulary>(std::move(*vocabulary));
}

Tokenizer make_tokenizer(const std::string& pre) {
  auto tokenizer = Tokenizer::create(make_vocabulary(small_vocabulary_data(pre)));
  return std::move(*tokenizer);
}

VocabularyData random_merges(Random& random, int letters, int merges, bool shuffled) {
  VocabularyData data;
  data.model = "gpt2";
  std::set<std::string> known;
  for (int i = 0; i < letters; ++i) {
    data.pieces.emplace_back(1, static_cast<char>('a' + i));
    known.insert(data.pieces.back());
  }
  while (static_cast<int>(data.merges.size()) < merges) {
    const std::string left = data.pieces[static_cast<std::size_t>(random.below(std::ssize(data.pieces)))];
    const std::string right = data.pieces[static_cast<std::size_t>(random.below(std::ssize(data.pieces)))];
    if (left.size() + right.size() > 24) continue;
    data.merges.push_back(left + " " + right);
    if (known.insert(left + right).second) data.pieces.push_back(left + right);
  }
  for (std::size_t i = data.merges.size(); shuffled && i > 1; --i) {
    std::swap(data.merges[i - 1], data.merges[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
  data.kinds.assign(data.pieces.size(), TokenKind::normal);
  return data;
}

std::string random_text(Random& random, std::string_view alphabet, std::size_t size) {
  std::string text(size, '\0');
  for (char& c : text) c = alphabet[static_cast<std::size_t>(random.below(std::ssize(alphabet)))];
  return text;
}

}  // namespace troupe::test
