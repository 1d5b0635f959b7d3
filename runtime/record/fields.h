// The bytes of a record: each struct names its fields once, in their order in the file, for writing and for reading.
//
// Numbers as they lie in memory (floats by their bits), a bool as one byte, texts and lists with a u64 length before
// them. To add a field: a line in its struct's fields(), and another kRecordVersion.
// A reader believes no length: every item is read before the next is made, and what the bytes cannot hold throws
// FormatError (load/byte_reader.h), which the record's reader turns into an Error.
#pragma once

#include <concepts>
#include <map>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "runtime/load/byte_reader.h"
#include "runtime/record/record.h"

namespace troupe {

// T or const T: one function for both directions.
template <class Self, class T>
concept FieldsOf = std::same_as<std::remove_const_t<Self>, T>;

template <class Codec, FieldsOf<RecordHeader> Self>
void fields(Codec& codec, Self& header) {
  codec(header.fingerprint, header.numerics, header.model, header.engine, header.kv_type, header.expand_to_f32,
        header.context, header.max_rows, header.kv_memory);
}

template <class Codec, FieldsOf<BatcherBegan> Self>
void fields(Codec& codec, Self& began) {
  codec(began.max_rows, began.fuse, began.linger, began.weights);
}

template <class Codec, FieldsOf<SamplingParams> Self>
void fields(Codec& codec, Self& p) {
  codec(p.temperature, p.top_k, p.top_p, p.min_p, p.repetition_penalty, p.frequency_penalty, p.presence_penalty);
  codec(p.logit_bias, p.seed, p.dynatemp_range, p.dynatemp_exponent, p.typical_p, p.xtc_probability, p.xtc_threshold);
  codec(p.dry_multiplier, p.dry_base, p.dry_allowed_length, p.dry_sequence_breakers);
  codec(p.mirostat, p.mirostat_tau, p.mirostat_eta);
}

// All but the processor.
template <class Codec, FieldsOf<SamplerState> Self>
void fields(Codec& codec, Self& state) {
  codec(state.in_prompt, state.in_answer, state.history, state.breaks, state.tail, state.mirostat_mu, state.to_spell,
        state.spelling);
}

template <class Codec, FieldsOf<StepOrigin> Self>
void fields(Codec& codec, Self& origin) {
  codec(origin.key, origin.background, origin.past, origin.sampling, origin.processed, origin.state);
}

template <class Codec, FieldsOf<StepArrived> Self>
void fields(Codec& codec, Self& step) {
  codec(step.session, step.position, step.tokens, step.no_end_for, step.logprobs, step.drafts, step.draft_odds,
        step.origin);
}

template <class Codec, FieldsOf<SessionLeft> Self>
void fields(Codec& codec, Self& left) {
  codec(left.session);
}

template <class Codec, FieldsOf<StepGuessed> Self>
void fields(Codec& codec, Self& guessed) {
  codec(guessed.session, guessed.tokens, guessed.odds);
}

template <class Codec, FieldsOf<ClockRead> Self>
void fields(Codec& codec, Self& read) {
  codec(read.now);
}

template <class Codec, FieldsOf<RecordedSlice> Self>
void fields(Codec& codec, Self& slice) {
  codec(slice.session, slice.position, slice.rows, slice.wants_token, slice.drafts);
}

template <class Codec, FieldsOf<BatchGathered> Self>
void fields(Codec& codec, Self& batch) {
  codec(batch.now, batch.withdrawn, batch.slices);
}

template <class Codec, FieldsOf<RecordedFault> Self>
void fields(Codec& codec, Self& fault) {
  codec(fault.call, fault.what);
}

template <class Codec, FieldsOf<TokenLogprob> Self>
void fields(Codec& codec, Self& entry) {
  codec(entry.token, entry.logprob);
}

template <class Codec, FieldsOf<Sampled> Self>
void fields(Codec& codec, Self& sampled) {
  codec(sampled.token, sampled.logprob, sampled.top, sampled.surprise);
}

template <class Codec, FieldsOf<SliceOutcome> Self>
void fields(Codec& codec, Self& outcome) {
  codec(outcome.sampled, outcome.after, outcome.failure);
}

template <class Codec, FieldsOf<LaunchEnded> Self>
void fields(Codec& codec, Self& ended) {
  codec(ended.now, ended.took, ended.faults, ended.outcomes);
}

class FieldWriter {
 public:
  explicit FieldWriter(std::string& out) : out_(out) {}

  template <class... Fields>
  void operator()(const Fields&... each) {
    (put(each), ...);
  }

 private:
  template <class T>
  void put(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      fields(*this, value);
    }
  }
  void put(const std::string& text) {
    put(static_cast<std::uint64_t>(text.size()));
    out_ += text;
  }
  template <class Rep, class Period>
  void put(const std::chrono::duration<Rep, Period>& time) {
    put(time.count());
  }
  void put(const TimePoint& time) { put(time.time_since_epoch()); }
  template <class A, class B>
  void put(const std::pair<A, B>& pair) {
    put(pair.first);
    put(pair.second);
  }
  template <class T>
  void put(const std::optional<T>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class T>
  void put(const std::shared_ptr<const T>& value) {
    put(value != nullptr);
    if (value) put(*value);
  }
  template <class List>
  requires requires(const List& list) { list.begin(); }
  void put(const List& list) {
    put(static_cast<std::uint64_t>(list.size()));
    for (const auto& item : list) put(item);
  }
  // In the order of their keys: the same content, the same bytes.
  template <class Key, class Value>
  void put(const std::unordered_map<Key, Value>& map) {
    put(std::map<Key, Value>(map.begin(), map.end()));
  }
  // A bool of it is no object with an address.
  void put(const std::vector<bool>& list) {
    put(static_cast<std::uint64_t>(list.size()));
    for (const bool item : list) put(item);
  }

  std::string& out_;
};

class FieldReader {
 public:
  explicit FieldReader(ByteReader& in) : in_(in) {}

  template <class... Fields>
  void operator()(Fields&... each) {
    (get(each), ...);
  }

 private:
  static constexpr const char* kWhat = "a field of the record";

  std::uint64_t count() { return in_.count(kWhat, 1); }
  template <class T>
  void get(T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      value = in_.number<T>(kWhat);
    } else {
      fields(*this, value);
    }
  }
  void get(bool& value) {
    const auto byte = in_.number<std::uint8_t>(kWhat);
    if (byte > 1) throw FormatError("a yes or no in it is neither");
    value = byte == 1;
  }
  void get(std::string& text) { text = in_.text(kWhat, in_.text_size(kWhat, in_.remaining())); }
  template <class Rep, class Period>
  void get(std::chrono::duration<Rep, Period>& time) {
    time = std::chrono::duration<Rep, Period>(in_.number<Rep>(kWhat));
  }
  void get(TimePoint& time) {
    TimePoint::duration since{};
    get(since);
    time = TimePoint(since);
  }
  template <class T>
  void get(std::optional<T>& value) {
    bool there = false;
    get(there);
    if (there) get(value.emplace());
  }
  template <class T>
  void get(std::shared_ptr<const T>& value) {
    std::optional<T> read;
    get(read);
    if (read) value = std::make_shared<const T>(std::move(*read));
  }
  template <class A, class B>
  void get(std::pair<A, B>& pair) {
    get(pair.first);
    get(pair.second);
  }
  template <class T>
  void get(std::vector<T>& list) {
    list.clear();
    for (std::uint64_t left = count(); left > 0; --left) {
      T item{};
      get(item);
      list.push_back(std::move(item));
    }
  }
  template <class Map>
  requires requires { typename Map::mapped_type; }
  void get(Map& map) {
    map.clear();
    for (std::uint64_t left = count(); left > 0; --left) {
      std::pair<typename Map::key_type, typename Map::mapped_type> entry{};
      get(entry);
      map.insert(std::move(entry));
    }
  }

  ByteReader& in_;
};

}  // namespace troupe
