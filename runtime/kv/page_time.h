// What pages cost: their number times the time for which they are held, in whole numbers, so that sums are exact.
//
// A million pages fill 63 bits of nanoseconds in less than three hours: seconds and the rest stand apart.
#pragma once

#include <chrono>
#include <cstdint>

namespace troupe {

struct PageTime {
  std::int64_t seconds = 0;      // page x seconds
  std::int64_t nanoseconds = 0;  // and page x nanoseconds, 0 to 999,999,999

  // Fewer than 2^31 pages; as many fill the seconds after 136 years.
  static PageTime of(std::int64_t pages, std::chrono::nanoseconds time) {
    return PageTime{pages * (time.count() / kSecond), pages * (time.count() % kSecond)}.carried();
  }
  double page_seconds() const { return static_cast<double>(seconds) + 1e-9 * static_cast<double>(nanoseconds); }

  friend PageTime operator+(const PageTime& a, const PageTime& b) {
    return PageTime{a.seconds + b.seconds, a.nanoseconds + b.nanoseconds}.carried();
  }
  friend PageTime operator-(const PageTime& a, const PageTime& b) {
    return PageTime{a.seconds - b.seconds - 1, a.nanoseconds - b.nanoseconds + kSecond}.carried();
  }
  auto operator<=>(const PageTime&) const = default;

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000;

  PageTime carried() const { return {seconds + nanoseconds / kSecond, nanoseconds % kSecond}; }
};

// How many pages from now on, and what they have cost until now. Times are a pool's age.
class PageMeter {
 public:
  std::int64_t pages() const { return pages_; }
  PageTime at(std::chrono::nanoseconds now) const { return cost_ + PageTime::of(pages_, now - since_); }
  void add(std::int64_t pages, std::chrono::nanoseconds now) { change(pages, {}, now); }
  // Another meter's pages and costs are counted here too, or no more.
  void join(const PageMeter& other, std::chrono::nanoseconds now) { change(other.pages_, other.at(now), now); }
  void part(const PageMeter& other, std::chrono::nanoseconds now) {
    change(-other.pages_, PageTime{} - other.at(now), now);
  }

 private:
  void change(std::int64_t pages, const PageTime& cost, std::chrono::nanoseconds now) {
    cost_ = at(now) + cost;
    since_ = now;
    pages_ += pages;
  }

  std::int64_t pages_ = 0;
  PageTime cost_;
  std::chrono::nanoseconds since_{0};
};

// All that a pool's pages have cost, and who paid: total == house + living + ended at every moment.
struct PageBill {
  PageTime total;
  PageTime house;   // pages whose payer let go while others held on, and those that nobody was named for
  PageTime living;  // accounts that are open
  PageTime ended;   // accounts that were closed

  bool operator==(const PageBill&) const = default;
};

}  // namespace troupe
