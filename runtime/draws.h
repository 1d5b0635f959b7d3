// Draws: the tokens of a launch. Chooses the next token of every slice that wants one and, as long as its guesses are
// right, those that follow (runtime/batch.h).
//
// What the choice remembers of its past is advanced with each right guess as the session will advance its own, so each
// token is chosen exactly as in a step of its own. All first tokens are chosen together, then all second ones: as many
// rounds as the longest run of right guesses has tokens, and no row is chosen from whose token would not count.
// Allocates nothing after the first launches, except for slices with guesses whose choice remembers something.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/batch.h"
#include "runtime/sampler.h"
#include "runtime/text/vocabulary.h"

namespace troupe {

struct DrawRows {
  Slice* slice = nullptr;
  float* logits = nullptr;   // [1 + guesses][vocabulary], changed
  std::int32_t guesses = 0;  // of slice->drafts, those that may be right
};

class Draws {
 public:
  Draws(Backend& backend, std::shared_ptr<const Vocabulary> vocabulary, std::int64_t max_rows);
  // Fills `sampled`, `after` and `right` of each slice; marks it failed when its first token cannot be chosen. Gives
  // the number of tokens chosen.
  std::size_t run(std::span<const DrawRows> rows);

 private:
  struct Draw {
    DrawRows rows;
    std::shared_ptr<SamplerState> state{};  // null: the slice's own
    std::int32_t nth = 0;                   // guesses that were right so far
    Sampled& out() const;
  };
  SampleRequest request(const Draw& draw) const;
  bool goes_on(Draw& draw, const SampleRequest& request) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  Sampler sampler_;
  std::vector<Draw> draws_;
  std::vector<SampleRequest> requests_;
};

}  // namespace troupe
