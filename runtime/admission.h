// Admission: which turn gets its pages when.
//
// A turn is admitted with all the pages that it may need, so that no turn stands still half way for want of memory. A
// turn that fits does not overtake one that waits for more. Before pages are refused, the index gives back what only it
// holds.
//
// The line is in the order of start-time fair queueing (runtime/row_shares.h) with pages for rows: keys have pages by
// their weights, and a key whose first turn comes stands beside, not behind, all that another has in line. Within a key
// it is first come, first served, but that interactive turns go before background ones, each of which is overtaken
// kOvertaken times at most. A key may have as many places in line as it leaves free (dynamic thresholds, Choudhury and
// Hahne 1998): half of what is free, so that it takes nine that flood it to fill it. Who finds no place is told at
// once, and how long it may take until those in line are served, at the rate at which turns have ended lately while
// others waited.
//
// A turn begins with the pages of the longest prefix that is known. If somebody is computing more of the same prefix
// right now, it may wait for that: 50 sessions that come at once with one long prompt compute it once. It waits only
// where most of what the other computes is of use to it, and no longer than the other does: whoever publishes, stops or
// dies lets its followers go on, one of them as the next to compute. Followers hold up nobody behind them.
//
// A turn in line has handed over its session's cache: turns that hold pages while they wait for more would wait for
// each other for ever. When all else fails, reclaim() takes the pages of those at the end of the line.
//
// Plain data: no thread, no clock. Time comes in as a parameter.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/result.h"
#include "runtime/kv/prefix_index.h"
#include "runtime/step_queue.h"
#include "runtime/time.h"
#include "runtime/turn_rate.h"

namespace troupe {

// What a session asks for before a turn. It hands over its cache, which may be empty.
struct PageRequest {
  SessionId session = 0;
  std::uint64_t turn = 0;  // rising; what a session says of an older turn changes nothing of a newer one
  std::string key;         // prefixes are shared inside one key
  std::shared_ptr<const std::vector<TokenId>> prompt;  // all tokens before the answer
  std::shared_ptr<KvCache> cache;                      // holds the first of them; not lent
  std::int64_t worst_case = 0;                         // tokens that the cache may have to hold
  bool background = false;
  std::shared_ptr<PagePayer> payer{};  // for the pages; null: the house
};

// The cache for the turn: it has all the pages, and as many of the prompt's tokens as were known.
struct PageGrant {
  std::shared_ptr<KvCache> cache;
};

class Admission {
 public:
  using Answer = std::function<void(Result<PageGrant>)>;

  // Turns that wait for pages; of one key half of it. Those that wait for a prefix are not limited: the pages may well
  // be there.
  static constexpr std::int64_t kLineLimit = 512;
  static constexpr int kOvertaken = 16;

  Admission(std::shared_ptr<PagePool> pool, std::shared_ptr<PrefixIndex> index, KeyWeights weights = {});

  // `answer` is called once: at once, later, or never after leave(). Refused at once: what can never fit, and a line
  // that is full; those carry Error::retry_after. A turn that was admitted may ask again, with all its pages given
  // back; a full line takes it.
  void push(PageRequest request, TimePoint deadline, Answer answer);
  // Pages have been given back.
  void serve();
  // The turn's prompt is computed and in the index.
  void published(SessionId session, std::uint64_t turn);
  // The turn is over: it waits for nothing and computes nothing.
  void leave(SessionId session, std::uint64_t turn);
  // The session is no more.
  void leave(SessionId session);
  // Every now and then: answers those whose deadline has passed, and measures how fast turns end.
  void drop_late(TimePoint now);

  std::size_t waiting() const { return line_.size(); }
  // The first in line could be admitted if there were more pages.
  bool short_of_pages() const { return short_; }
  // Takes the cache of the last in line that holds pages; if only the first does, its own. False: nobody does, or a
  // turn is running whose pages will come back.
  bool reclaim();

 private:
  struct Waiter {
    PageRequest request;
    TimePoint deadline;
    Answer answer;
    std::optional<SessionId> leader{};  // who computes what it waits for
    double start = 0.0;                 // in virtual time: the line's order
    int overtaken = 0;
  };
  // Who computes its prompt from `from` on.
  struct Leader {
    std::uint64_t turn = 0;
    std::string key;
    std::shared_ptr<const std::vector<TokenId>> prompt;
    std::int64_t from = 0;
  };

  void stand_in_line(Waiter newcomer);
  void overtake(std::size_t place);
  double finish(const Waiter& waiter) const;
  void count_served(const Waiter& waiter);
  enum class Outcome : std::uint8_t { admitted, follows, no_pages };
  Outcome admit(Waiter& waiter);
  std::optional<SessionId> leader_for(const PageRequest& request, std::int64_t known) const;
  bool reserve(KvCache& cache, const PageRequest& request);
  void forget(SessionId session, std::uint64_t turn);
  std::optional<Error> refuse(const PageRequest& request, bool goes_on) const;

  std::shared_ptr<PagePool> pool_;
  std::shared_ptr<PrefixIndex> index_;
  KeyWeights weights_;
  std::deque<Waiter> line_;                           // in the order in which it is served
  double now_ = 0.0;                                  // virtual time: the start of who was admitted last
  std::unordered_map<std::string, double> finished_;  // by key, the finish of its last turn, where that is ahead of now
  TurnRate rate_;
  bool short_ = false;
  std::unordered_map<SessionId, Leader> leaders_;
  std::unordered_map<SessionId, std::uint64_t> running_;  // turns that were admitted
};

}  // namespace troupe
