// What the tests of the text side share: the small vocabulary of tests/data/tokenizer, and others made in the test.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/tokenizer.h"
#include "runtime/text/vocabulary.h"
#include "tests/support/random.h"

namespace troupe::test {

// tests/data/tokenizer/vocabulary.json with the pre-tokenizer of this GGUF name. All 256 bytes have a token.
VocabularyData small_vocabulary_data(const std::string& pre);
// Aborts the test program by std::logic_error if the data is refused.
std::shared_ptr<const Vocabulary> make_vocabulary(VocabularyData data);
Tokenizer make_tokenizer(const std::string& pre);

// A vocabulary of `letters` ("ab…") and of pieces joined from it at random; merges stand in random order if `shuffled`,
// else as training gives them.
VocabularyData random_merges(Random& random, int letters, int merges, bool shuffled);
std::string random_text(Random& random, std::string_view alphabet, std::size_t size);

}  // namespace troupe::test
