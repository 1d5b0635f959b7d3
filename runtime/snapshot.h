// Snapshot: a session in a file, and back: its conversation, and the keys and values of its tokens, so that whoever
// loads it computes none of them again and goes on with the same bits.
//
// The file (little-endian): the 16 bytes of kMagic; u32 version, u32 0; u64 bytes of the header, u64 bytes of the
// keys and values; the header, JSON as it stands in snapshot.cpp; the keys and values
//     [layer][token][K | V][kv head][head_dim]
// in the pool's element type (each [head_dim] of i8 with its float32 scale behind it), whatever pages and backends do;
// u64 Fnv64 of all that stands before. The engine's fingerprint is in the header: of another model, precision or
// numerics the file is refused. Written whole or not at all (replace_file.h). A file that was changed or cut is refused
// before a page is taken.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include "kernels/result.h"
#include "runtime/conversation.h"
#include "runtime/kv/kv_cache.h"
#include "runtime/kv/sleep_room.h"
#include "runtime/session_settings.h"

namespace troupe {

// Where a snapshot belongs.
struct SnapshotHome {
  std::uint64_t fingerprint = 0;  // Engine::fingerprint
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<PagePool> pages;
  std::int64_t context = std::numeric_limits<std::int64_t>::max();  // tokens a session may hold
  std::function<void(std::int64_t pages)> make_room{};              // called when the pool has fewer pages free
  std::shared_ptr<SleepRoom> sleep_room{};                          // where caches of this house sleep; may be null
};

struct Snapshot {
  SessionSettings settings;
  Conversation conversation;
  KvCache cache;  // empty when the pool has no room: the tokens are then computed again, to the same bits
};

// `cache` holds the first of the tokens that are seen of the conversation, may be that of a fork, and may sleep in the
// home's room. Where a sleeper was lost, the file has its tokens only.
Result<void> save_snapshot(const std::string& path, const SnapshotHome& home, const SessionSettings& settings,
                           const Conversation& conversation, const KvCache& cache);
Result<Snapshot> load_snapshot(const std::string& path, const SnapshotHome& home);

}  // namespace troupe
