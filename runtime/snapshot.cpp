#include "runtime/snapshot.h"

#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "runtime/kv/token_row.h"
#include "runtime/snapshot_file.h"

namespace troupe {
namespace {

using nlohmann::json;

struct Nonsense : std::runtime_error {
  using runtime_error::runtime_error;
};

// Our headers are nested four deep. A level costs the parser 80 bytes and the file one.
bool too_deep(std::string_view text) {
  constexpr int kDeepest = 8;
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size() && depth <= kDeepest; ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += (text[i] == '[' || text[i] == '{') - (text[i] == ']' || text[i] == '}');
    }
  }
  return depth > kDeepest;
}

// JSON's strings are UTF-8, a session's text may end in half a character: every byte stands as the code point of its
// number. (JSON and not a binary form of it: their parsers call themselves once a level, and a file can have millions.)
std::string as_code_points(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80) text += static_cast<char>(byte < 0xc0 ? 0xc2 : 0xc3);
    text += static_cast<char>(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
  }
  return text;
}

std::string bytes_in(const json& value) {
  const auto& text = value.get_ref<const std::string&>();
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const bool two = (lead == 0xc2 || lead == 0xc3) && i + 1 < text.size();
    bytes += two ? static_cast<char>((lead & 0x03) << 6 | (text[++i] & 0x3f)) : text[i];
  }
  return bytes;
}

std::uint64_t payload_bytes(const KvLayout& layout, std::int64_t tokens) {
  return static_cast<std::uint64_t>(layout.layers) * static_cast<std::uint64_t>(tokens) * TokenRow::bytes(layout);
}

// Rows in the file's order: all tokens of a layer, then the next layer's.
struct RowOrder {
  std::int64_t tokens;
  std::int64_t next = 0;
  int layer() const { return static_cast<int>(next / tokens); }
  std::int64_t page() const { return next % tokens / KvLayout::kPageTokens; }
  int slot() const { return static_cast<int>(next % tokens % KvLayout::kPageTokens); }
};

json layout_of(const KvLayout& layout) {
  return {layout.layers, layout.kv_heads, layout.head_dim, static_cast<int>(layout.type)};
}

// A float's shortest decimal form gives its bits again.
json sampling_of(const SamplingParams& p) {
  json breakers = json::array();
  for (const std::string& breaker : p.dry_sequence_breakers) breakers.push_back(as_code_points(breaker));
  return {{"temperature", p.temperature},
          {"top", {p.top_k, p.top_p, p.min_p, p.typical_p}},
          {"penalties", {p.repetition_penalty, p.frequency_penalty, p.presence_penalty}},
          {"dynatemp", {p.dynatemp_range, p.dynatemp_exponent}},
          {"xtc", {p.xtc_probability, p.xtc_threshold}},
          {"dry", {p.dry_multiplier, p.dry_base, p.dry_allowed_length}},
          {"breakers", breakers},
          {"mirostat", {p.mirostat, p.mirostat_tau, p.mirostat_eta}},
          {"seed", p.seed},
          {"bias", p.logit_bias}};
}

template <class... Fields>
void read_list(const json& list, Fields&... fields) {
  std::size_t place = 0;
  (list.at(place++).get_to(fields), ...);
}

SamplingParams sampling_in(const json& block) {
  SamplingParams p;
  block.at("temperature").get_to(p.temperature);
  read_list(block.at("top"), p.top_k, p.top_p, p.min_p, p.typical_p);
  read_list(block.at("penalties"), p.repetition_penalty, p.frequency_penalty, p.presence_penalty);
  read_list(block.at("dynatemp"), p.dynatemp_range, p.dynatemp_exponent);
  read_list(block.at("xtc"), p.xtc_probability, p.xtc_threshold);
  read_list(block.at("dry"), p.dry_multiplier, p.dry_base, p.dry_allowed_length);
  p.dry_sequence_breakers.clear();
  for (const json& breaker : block.at("breakers")) p.dry_sequence_breakers.push_back(bytes_in(breaker));
  read_list(block.at("mirostat"), p.mirostat, p.mirostat_tau, p.mirostat_eta);
  block.at("seed").get_to(p.seed);
  block.at("bias").get_to(p.logit_bias);
  return p;
}

std::string header_of(const SnapshotHome& home, const SessionSettings& settings, const Conversation::Parts& parts,
                      std::int64_t cached) {
  json header{{"fingerprint", home.fingerprint},
              {"layout", layout_of(home.pages->layout())},
              {"key", as_code_points(settings.key)},
              {"sampling", sampling_of(settings.sampling)},
              {"window", {settings.window.tokens, settings.window.sinks}},
              {"tokens", parts.tokens},
              {"cached", cached},
              {"leftover", as_code_points(parts.leftover)},
              {"messages", json::array()},
              {"marks", json::array()}};
  for (const Message& message : parts.messages)
    header["messages"].push_back({as_code_points(message.role), as_code_points(message.content)});
  for (const Conversation::Mark& mark : parts.marks) {
    header["marks"].push_back({mark.tokens, mark.messages, mark.answering});
  }
  return header.dump();
}

// JSON's numbers are of any size and kind; a cast of what does not fit means nothing.
template <class Number>
Number whole_number(const json& value) {
  if (value.is_number_unsigned() && std::in_range<Number>(value.get<std::uint64_t>())) return value.get<Number>();
  if (value.is_number_integer() && !value.is_number_unsigned() && std::in_range<Number>(value.get<std::int64_t>())) {
    return value.get<Number>();
  }
  throw Nonsense("a number in it is none of a token or a place");
}

Conversation::Parts parts_of(const json& header) {
  Conversation::Parts parts;
  for (const json& token : header.at("tokens")) parts.tokens.push_back(whole_number<TokenId>(token));
  parts.leftover = bytes_in(header.at("leftover"));
  for (const json& message : header.at("messages")) {
    parts.messages.push_back({bytes_in(message.at(0)), bytes_in(message.at(1))});
  }
  for (const json& mark : header.at("marks")) {
    parts.marks.push_back(
        {whole_number<std::int64_t>(mark.at(0)), whole_number<std::size_t>(mark.at(1)), mark.at(2).get<bool>()});
  }
  return parts;
}

// Where a cache's tokens stand: in its pages, or, while it sleeps, in memory that is made for the file. No pages: there
// are no tokens, or they slept and were lost.
Result<PageImage> pages_of(const SnapshotHome& home, const KvCache& cache) {
  if (!cache.asleep()) return PageImage{{}, {cache.pages(), cache.pages() + pages_for(cache.length())}};
  auto image = home.sleep_room->image(*cache.sleeper());
  if (!image && image.error().code == ErrorCode::not_found) return PageImage{};
  return image;
}

// A cache with pages for so many tokens; empty where there is no room.
KvCache make_cache(const SnapshotHome& home, std::int64_t tokens) {
  KvCache cache(home.pages);
  if (cache.reserve(tokens)) return cache;
  if (home.make_room) home.make_room(cache.pages_missing(tokens) - home.pages->free());
  cache.reserve(tokens);
  return cache;
}

// Fills pages that nobody else knows.
Result<void> fill(const SnapshotFile& file, KvCache& cache, std::int64_t tokens) {
  const KvLayout& layout = cache.pool()->layout();
  const std::size_t size = TokenRow::bytes(layout);
  const KvLease lease = cache.lend();
  RowOrder order{tokens};
  std::string rest;
  auto read = file.read_payload([&](std::string_view part) {
    rest += part;
    std::size_t at = 0;
    for (; rest.size() - at >= size; at += size, ++order.next) {
      const TokenRow row(layout, order.layer(), order.slot());
      row.write(lease.pages()[order.page()], reinterpret_cast<const std::byte*>(rest.data() + at));
    }
    rest.erase(0, at);
  });
  if (!read) return read;
  cache.commit(tokens);
  cache.mark_foreign();  // the checksum says that it is what was written, not who wrote it
  return {};
}

Result<void> check_home(const json& header, const SnapshotHome& home) {
  const json layout = layout_of(home.pages->layout());
  const auto type = whole_number<std::size_t>(header.at("layout").at(3));
  if (type >= std::size(kKvTypes)) throw Nonsense("its keys and values are of no known type");
  if (kKvTypes[type] != home.pages->layout().type) {
    return Error{ErrorCode::unsupported, std::string("its keys and values are ") + name(kKvTypes[type]) +
                                             ", this host's " + name(home.pages->layout().type) + ": give --kv-type " +
                                             name(kKvTypes[type])};
  }
  if (header.at("fingerprint").get<std::uint64_t>() != home.fingerprint || header.at("layout") != layout) {
    return Error{ErrorCode::unsupported, "it was saved with another model, or other precision of its weights"};
  }
  return {};
}

Result<Snapshot> restore(const SnapshotFile& file, const json& header, const SnapshotHome& home) {
  if (auto checked = check_home(header, home); !checked) return checked.error();
  auto conversation = Conversation::from(parts_of(header), *home.vocabulary);
  if (!conversation) return conversation.error();
  const TokenWindow window{whole_number<std::int64_t>(header.at("window").at(0)),
                           whole_number<std::int64_t>(header.at("window").at(1))};
  if (auto checked = window.validate(home.context); !checked) return checked.error();
  const std::int64_t seen = window.seen(std::ssize(conversation->tokens()));
  if (seen > home.context) {
    return Error{ErrorCode::context_length, "it has " + std::to_string(seen) + " tokens; the context holds " +
                                                std::to_string(home.context) + " (--context)"};
  }
  const auto cached = whole_number<std::int64_t>(header.at("cached"));
  if (cached < 0 || cached > seen || file.payload_bytes() != payload_bytes(home.pages->layout(), cached)) {
    return Error{ErrorCode::bad_input, "it tells of " + std::to_string(cached) + " computed tokens, and holds others"};
  }
  SamplingParams sampling = sampling_in(header.at("sampling"));
  if (auto checked = sampling.validate(home.vocabulary->size()); !checked) return checked.error();
  Snapshot snapshot{
      {bytes_in(header.at("key")), std::move(sampling), window}, std::move(*conversation), make_cache(home, cached)};
  if (snapshot.cache.capacity() >= cached && cached > 0) {
    if (auto filled = fill(file, snapshot.cache, cached); !filled) return filled.error();
  }
  return snapshot;
}

}  // namespace

Result<void> save_snapshot(const std::string& path, const SnapshotHome& home, const SessionSettings& settings,
                           const Conversation& conversation, const KvCache& cache) {
  const KvLayout& layout = home.pages->layout();
  try {
    auto image = pages_of(home, cache);
    if (!image) return image.error();
    const std::int64_t tokens = image->pages.empty() ? 0 : cache.length();
    const std::string header = header_of(home, settings, conversation.parts(), tokens);
    return write_snapshot_file(path, header, payload_bytes(layout, tokens), [&](const WritePart& write) {
      constexpr std::size_t kPart = std::size_t{1} << 20;
      const std::size_t size = TokenRow::bytes(layout);
      std::vector<std::byte> rows;
      for (RowOrder order{tokens}; order.next < tokens * layout.layers; ++order.next) {
        rows.resize(rows.size() + size);
        TokenRow(layout, order.layer(), order.slot())
            .read(image->pages[static_cast<std::size_t>(order.page())], rows.data() + rows.size() - size);
        if (rows.size() < kPart && order.next + 1 < tokens * layout.layers) continue;
        if (!write({reinterpret_cast<const char*>(rows.data()), rows.size()})) return;
        rows.clear();
      }
    });
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, path + ": no memory to save this session"};
  }
}

Result<Snapshot> load_snapshot(const std::string& path, const SnapshotHome& home) {
  auto file = SnapshotFile::open(path);
  if (!file) return file.error();
  try {
    if (too_deep(file->header())) throw Nonsense("its header is nested too deep");
    auto snapshot = restore(*file, json::parse(file->header()), home);
    if (snapshot) return snapshot;
    return Error{snapshot.error().code, path + ": " + snapshot.error().message};
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::out_of_memory, path + ": no memory to load this session"};
  } catch (const Nonsense& error) {
    return Error{ErrorCode::bad_input, path + ": not a saved session: " + error.what()};
  } catch (const json::exception& error) {
    return Error{ErrorCode::bad_input, path + ": not a saved session: " + error.what()};
  }
}

}  // namespace troupe
