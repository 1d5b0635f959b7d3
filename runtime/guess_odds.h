// GuessOdds: how often guesses were right of late, when those before them were.
//
// Each new one counts as much as all but the last kMemory. What is believed before anything is known counts as much as
// kDoubt guesses.
#pragma once

namespace troupe {

class GuessOdds {
 public:
  float of(float prior) const { return (right_ + kDoubt * prior) / (tried_ + kDoubt); }
  void count(bool right) {
    fade(1.0f - 1.0f / kMemory);
    right_ += right ? 1.0f : 0.0f;
    tried_ += 1.0f;
  }
  // What is known counts only so much from now on.
  void fade(float kept) {
    right_ *= kept;
    tried_ *= kept;
  }

 private:
  static constexpr float kMemory = 16.0f, kDoubt = 2.0f;
  float right_ = 0.0f, tried_ = 0.0f;
};

}  // namespace troupe
