// Admission: which turn gets its pages when.
//
// A turn is admitted with all the pages that it may need, so that no turn stands still half way for want of memory. The
// line is first come, first served: a turn that fits does not overtake one that waits for more. Before pages are
// refused, the index gives back what only it holds.
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

namespace troupe {

// What a session asks for before a turn. It hands over its cache, which may be empty.
struct PageRequest {
  SessionId session = 0;
  std::uint64_t turn = 0;  // rising; what a session says of an older turn changes nothing of a newer one
  std::string key;         // prefixes are shared inside one key
  std::shared_ptr<const std::vector<TokenId>> prompt;  // all tokens before the answer
  std::shared_ptr<KvCache> cache;                      // holds the first of them; not lent
  std::int64_t worst_case = 0;                         // tokens that the cache may have to hold
};

// The cache for the turn: it has all the pages, and as many of the prompt's tokens as were known.
struct PageGrant {
  std::shared_ptr<KvCache> cache;
};

class Admission {
 public:
  using Answer = std::function<void(Result<PageGrant>)>;

  // Turns that wait for pages. Those that wait for a prefix are not limited: the pages may well be there.
  static constexpr std::int64_t kLineLimit = 256;

  Admission(std::shared_ptr<PagePool> pool, std::shared_ptr<PrefixIndex> index);

  // `answer` is called once: at once, later, or never after leave(). Refused at once: what can never fit, and a line
  // that is full. A turn that was admitted may ask again, with all its pages given back.
  void push(PageRequest request, TimePoint deadline, Answer answer);
  // Pages have been given back.
  void serve();
  // The turn's prompt is computed and in the index.
  void published(SessionId session, std::uint64_t turn);
  // The turn is over: it waits for nothing and computes nothing.
  void leave(SessionId session, std::uint64_t turn);
  // The session is no more.
  void leave(SessionId session);
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
    std::optional<SessionId> leader;  // who computes what it waits for
  };
  // Who computes its prompt from `from` on.
  struct Leader {
    std::uint64_t turn = 0;
    std::string key;
    std::shared_ptr<const std::vector<TokenId>> prompt;
    std::int64_t from = 0;
  };

  enum class Outcome : std::uint8_t { admitted, follows, no_pages };
  Outcome admit(Waiter& waiter);
  std::optional<SessionId> leader_for(const PageRequest& request, std::int64_t known) const;
  bool reserve(KvCache& cache, std::int64_t tokens);
  void forget(SessionId session, std::uint64_t turn);
  std::optional<Error> refuse(const PageRequest& request) const;

  std::shared_ptr<PagePool> pool_;
  std::shared_ptr<PrefixIndex> index_;
  std::deque<Waiter> line_;
  bool short_ = false;
  std::unordered_map<SessionId, Leader> leaders_;
  std::unordered_map<SessionId, std::uint64_t> running_;  // turns that were admitted
};

}  // namespace troupe
