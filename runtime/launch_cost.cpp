#include "runtime/launch_cost.h"

#include <algorithm>
#include <cmath>

namespace troupe {
namespace {

constexpr double kNoise = 0.25;           // of a launch's time, standard deviation
constexpr double kDrift = 0.005;          // variance that a part gains a launch: a quarter of a surprise is believed
constexpr double kDoubt = 1.0;            // most variance of a part
constexpr double kBelievable = 3.0;       // standard deviations
constexpr double kAttended = 8192.0;      // the first guess: so many attended tokens cost what a row costs
constexpr double kLaunch = 0.25;          // and a launch what so many rows cost
constexpr double kDearest = 1.0 / 256.0;  // of an attended token, in rows: more is a wrong guess of the row
constexpr double kLeastSeconds = 1e-9;

std::array<double, 3> counts(const LaunchWork& work) {
  return {1.0, static_cast<double>(work.rows), work.attended};
}

}  // namespace

Seconds LaunchCost::of(const LaunchWork& work) const {
  const Parts count = counts(work);
  return Seconds(seconds_[0] * count[0] + seconds_[1] * count[1] + seconds_[2] * count[2]);
}

double LaunchCost::rows_worth(const LaunchWork& work) const {
  return static_cast<double>(work.rows) + std::min(seconds_[2] / seconds_[1], kDearest) * work.attended;
}

std::int64_t LaunchCost::rows_within(Seconds budget, std::int64_t position) const {
  const double row = seconds_[1] + seconds_[2] * static_cast<double>(position + 1);
  return std::llround(std::clamp(budget.count() / row, 0.0, 1e6));
}

void LaunchCost::learn(const LaunchWork& work, Seconds took) {
  const double seconds = std::max(took.count(), kLeastSeconds);
  if (!knows_) return begin(work, seconds);
  drift();
  const Parts count = counts(work);
  const double expected = of(work).count();
  Parts gain{};
  double doubt = kNoise * kNoise * expected * expected;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) gain[i] += covariance_[i][j] * count[j];
    doubt += count[i] * gain[i];
  }
  const double most = kBelievable * std::sqrt(doubt);
  const double surprise = std::clamp(seconds - expected, -most, most);
  for (std::size_t i = 0; i < 3; ++i) {
    seconds_[i] += gain[i] / doubt * surprise;
    for (std::size_t j = 0; j < 3; ++j) covariance_[i][j] -= gain[i] * gain[j] / doubt;
  }
  seconds_[1] = std::max({seconds_[1], seconds_[0] / 1024.0, kLeastSeconds});
  seconds_[0] = std::max(seconds_[0], 0.0);
  seconds_[2] = std::max(seconds_[2], 0.0);
}

// Until narrow and wide ones tell the two apart, nearly all of a launch is its rows: a first slice that is too short
// costs less than one that is too long.
void LaunchCost::begin(const LaunchWork& work, double seconds) {
  const double row = seconds / (kLaunch + static_cast<double>(work.rows) + work.attended / kAttended);
  seconds_ = {kLaunch * row, row, row / kAttended};
  const Parts most = scale();
  for (std::size_t i = 0; i < 3; ++i) covariance_[i][i] = kDoubt * most[i] * most[i];
  knows_ = true;
}

// What a part may well be, whatever the noise of other launches made of it.
LaunchCost::Parts LaunchCost::scale() const {
  return {std::max(seconds_[0], seconds_[1]), std::max(seconds_[1], seconds_[0] / 64.0),
          std::max(seconds_[2], seconds_[1] / kAttended)};
}

// What has not been seen for long may have changed.
void LaunchCost::drift() {
  const Parts most = scale();
  for (std::size_t i = 0; i < 3; ++i) {
    covariance_[i][i] += kDrift * most[i] * most[i];
    const double shrink = std::sqrt(std::min(kDoubt * most[i] * most[i] / covariance_[i][i], 1.0));
    for (std::size_t j = 0; j < 3; ++j) {
      covariance_[i][j] *= shrink;
      covariance_[j][i] *= shrink;
    }
  }
}

}  // namespace troupe
