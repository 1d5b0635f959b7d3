#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "tests/load/malformed.h"

namespace troupe::test {
namespace {

using namespace gguf_type;

template <class T>
Malformed with(GgufImage image, const std::string& key, T value, const char* place = nullptr) {
  image.set(key, value);
  return {image.bytes(), place != nullptr ? place : key};
}

Malformed with_i32(GgufImage image, const std::string& key, std::int32_t value) {
  image.set_raw(key, kI32, raw(value));
  return {image.bytes(), key};
}

std::uint32_t number(GgufImage& image, const std::string& key) {
  std::uint32_t value = 0;
  std::memcpy(&value, image.entry(key).payload.data(), sizeof value);
  return value;
}

Malformed without(GgufImage image, const std::string& key) {
  image.erase(key);
  return {image.bytes(), key};
}

const std::string kInfinity = raw(std::numeric_limits<float>::infinity());

}  // namespace

std::vector<MalformedClass> malformed_models() {
  return {
      {"no architecture", [](GgufImage image, Random&) { return without(image, "general.architecture"); }},
      {"an architecture of the wrong type",
       [](GgufImage image, Random&) { return with(image, "general.architecture", 7u); }},
      {"an unknown architecture",
       [](GgufImage image, Random&) {
         image.set("general.architecture", std::string("perceptron"));
         return Malformed{image.bytes(), "perceptron"};
       }},
      {"a parameter missing",
       [](GgufImage image, Random& random) {
         static constexpr const char* kNeeded[] = {
             "llama.block_count",         "llama.context_length",       "llama.embedding_length",
             "llama.feed_forward_length", "llama.attention.head_count", "llama.attention.layer_norm_rms_epsilon"};
         return without(image, kNeeded[random.below(6)]);
       }},
      {"a count as text",
       [](GgufImage image, Random&) { return with(image, "llama.block_count", std::string("two")); }},
      {"a negative count", [](GgufImage image, Random&) { return with_i32(image, "llama.attention.head_count", -4); }},
      {"a count as a float", [](GgufImage image, Random&) { return with(image, "llama.embedding_length", 64.0f); }},
      {"a count of 0",
       [](GgufImage image, Random& random) {
         static constexpr const char* kCounts[] = {"llama.block_count",          "llama.context_length",
                                                   "llama.embedding_length",     "llama.feed_forward_length",
                                                   "llama.attention.head_count", "llama.attention.head_count_kv",
                                                   "llama.rope.dimension_count"};
         return with(image, kCounts[random.below(7)], 0u);
       }},
      {"a huge count",
       [](GgufImage image, Random& random) {
         static constexpr const char* kCounts[] = {"llama.block_count", "llama.context_length",
                                                   "llama.embedding_length", "llama.feed_forward_length",
                                                   "llama.attention.head_count"};
         return with(image, kCounts[random.below(5)], 0xfffffff0u);
       }},
      {"an epsilon as an integer",
       [](GgufImage image, Random&) { return with(image, "llama.attention.layer_norm_rms_epsilon", 1u); }},
      {"an epsilon that is not a number",
       [](GgufImage image, Random&) { return with(image, "llama.attention.layer_norm_rms_epsilon", std::nanf("")); }},
      {"an epsilon below 0",
       [](GgufImage image, Random&) { return with(image, "llama.attention.layer_norm_rms_epsilon", -1e-5f); }},
      {"an infinite rope base",
       [](GgufImage image, Random&) {
         image.set_raw("llama.rope.freq_base", kF32, kInfinity);
         return Malformed{image.bytes(), "llama.rope.freq_base"};
       }},
      {"a rope base of 0", [](GgufImage image, Random&) { return with(image, "llama.rope.freq_base", 0.0f); }},
      {"an odd rope dimension",
       [](GgufImage image, Random&) { return with(image, "llama.rope.dimension_count", 15u); }},
      {"a rope dimension wider than the head",
       [](GgufImage image, Random&) { return with(image, "llama.rope.dimension_count", 4096u); }},
      {"a rope scaling of the wrong type",
       [](GgufImage image, Random&) { return with(image, "llama.rope.scaling.type", 1u); }},
      {"a rope scaling factor below 0",
       [](GgufImage image, Random&) {
         image.set("llama.rope.scaling.type", std::string("linear"));
         return with(image, "llama.rope.scaling.factor", -2.0f);
       }},
      {"heads that do not divide the width",
       [](GgufImage image, Random&) { return with(image, "llama.attention.head_count", 5u, "head_count, 5"); }},
      {"key heads that do not divide the heads",
       [](GgufImage image, Random&) {
         image.set("llama.attention.head_count_kv", 3u);
         return Malformed{image.bytes(), "head_count_kv"};
       }},
      {"a width that the tensors do not have",
       [](GgufImage image, Random&) {
         image.set("llama.embedding_length", 2 * number(image, "llama.embedding_length"));
         return Malformed{image.bytes(), "tensor"};
       }},
      {"a feed-forward length that the tensors do not have",
       [](GgufImage image, Random&) {
         image.set("llama.feed_forward_length", number(image, "llama.feed_forward_length") + 32);
         return Malformed{image.bytes(), "ffn_"};
       }},
      {"more layers than there",
       [](GgufImage image, Random&) {
         image.set("llama.block_count", number(image, "llama.block_count") + 1);
         return Malformed{image.bytes(), "blk.2."};
       }},
      {"fewer layers than there",
       [](GgufImage image, Random&) {
         image.set("llama.block_count", number(image, "llama.block_count") - 1);
         return Malformed{image.bytes(), "blk.1."};
       }},
      {"a tensor missing",
       [](GgufImage image, Random& random) {
         std::string name = any_tensor(image, random).name;
         if (name == "output.weight" || name == "rope_freqs.weight") name = "output_norm.weight";  // those are optional
         std::erase_if(image.tensors, [&](const ImageTensor& one) { return one.name == name; });
         return Malformed{image.bytes(), name};
       }},
      {"a tensor that belongs nowhere",
       [](GgufImage image, Random& random) {
         const std::string name = "blk." + std::to_string(random.below(2)) + ".attn_q.bias";
         image.add_tensor(name, {64}, 0, std::string(256, '\0'));
         return Malformed{image.bytes(), name};
       }},
      {"a tensor of the wrong shape",
       [](GgufImage image, Random& random) {
         static constexpr const char* kNames[] = {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_down"};
         ImageTensor& tensor = image.tensor(std::string("blk.1.") + kNames[random.below(6)] + ".weight");
         tensor.dims[1] /= 2;
         return Malformed{image.bytes(), tensor.name};
       }},
      {"a stack of matrices with as many rows",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         tensor.dims = {tensor.dims[0], tensor.dims[1] / 2, 2};
         return Malformed{image.bytes(), tensor.name};
       }},
      {"a norm of the wrong length",
       [](GgufImage image, Random&) {
         image.tensor("blk.1.ffn_norm.weight").dims = {32};
         return Malformed{image.bytes(), "blk.1.ffn_norm.weight"};
       }},
      {"a matrix scale that is not finite",
       [](GgufImage image, Random& random) {
         ImageTensor& tensor = any_matrix(image, random);
         // The first block's value or scale: infinity in float32 or binary16.
         tensor.data.replace(0, tensor.type == 0 ? 4 : 2, tensor.type == 0 ? kInfinity : raw(std::uint16_t{0x7c00}));
         return Malformed{image.bytes(), "tensor " + tensor.name};
       }},
      {"a norm weight that is not a number",
       [](GgufImage image, Random&) {
         image.tensor("output_norm.weight").data.replace(8, 4, raw(std::nanf("")));
         return Malformed{image.bytes(), "output_norm.weight"};
       }},
      {"rope factors of the wrong number",
       [](GgufImage image, Random&) {
         if (image.tensors.back().name == "rope_freqs.weight") image.tensors.pop_back();
         image.add_tensor("rope_freqs.weight", {5}, 0, std::string(20, '\0'));
         return Malformed{image.bytes(), "rope_freqs.weight"};
       }},
      {"a rope factor of 0",
       [](GgufImage image, Random&) {
         if (image.tensors.back().name == "rope_freqs.weight") image.tensors.pop_back();
         const std::uint64_t pairs = number(image, "llama.rope.dimension_count") / 2;
         image.add_tensor("rope_freqs.weight", {pairs}, 0, std::string(4 * pairs, '\0'));
         return Malformed{image.bytes(), "rope_freqs.weight"};
       }},
      {"no vocabulary", [](GgufImage image, Random&) { return without(image, "tokenizer.ggml.tokens"); }},
      {"no tokenizer model", [](GgufImage image, Random&) { return without(image, "tokenizer.ggml.model"); }},
      {"a vocabulary of numbers",
       [](GgufImage image, Random&) {
         return with(image, "tokenizer.ggml.tokens", std::vector<std::int32_t>(512, 1));
       }},
      {"an empty vocabulary",
       [](GgufImage image, Random&) { return with(image, "tokenizer.ggml.tokens", std::vector<std::string>()); }},
      {"fewer tokens than kinds",
       [](GgufImage image, Random& random) {
         image.set("tokenizer.ggml.token_type",
                   std::vector<std::int32_t>(static_cast<std::size_t>(1 + random.below(511)), 1));
         return Malformed{image.bytes(), "tokenizer.ggml.token_type"};
       }},
      {"a kind that does not exist",
       [](GgufImage image, Random& random) {
         std::vector<std::int32_t> kinds(512, 1);
         kinds[static_cast<std::size_t>(random.below(512))] = random.below(2) == 0 ? 0 : 7;
         return with(image, "tokenizer.ggml.token_type", kinds);
       }},
      {"kinds as text",
       [](GgufImage image, Random&) {
         return with(image, "tokenizer.ggml.token_type", std::vector<std::string>(512, "1"));
       }},
      {"a vocabulary that the embedding does not have",
       [](GgufImage image, Random&) {
         image.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "c"});
         image.set("tokenizer.ggml.token_type", std::vector<std::int32_t>(3, 1));
         image.set("tokenizer.ggml.merges", std::vector<std::string>());
         return Malformed{image.bytes(), "token_embd.weight"};
       }},
      {"an end token outside the vocabulary",
       [](GgufImage image, Random& random) {
         return with(image, "tokenizer.ggml.eos_token_id", 512 + static_cast<std::uint32_t>(random.below(1 << 30)));
       }},
      {"a start token of -1",
       [](GgufImage image, Random&) { return with_i32(image, "tokenizer.ggml.bos_token_id", -1); }},
      {"an unknown token beyond 32 bits",
       [](GgufImage image, Random&) {
         image.set_raw("tokenizer.ggml.unknown_token_id", kU64, raw(std::uint64_t{1} << 32));
         return Malformed{image.bytes(), "tokenizer.ggml.unknown_token_id"};
       }},
      {"a merge of pieces that are not there",
       [](GgufImage image, Random&) {
         return with(image, "tokenizer.ggml.merges", std::vector<std::string>{"a b", "zq xj"});
       }},
      {"a merge of one piece",
       [](GgufImage image, Random&) { return with(image, "tokenizer.ggml.merges", std::vector<std::string>{"the"}); }},
      {"merges of numbers",
       [](GgufImage image, Random&) {
         return with(image, "tokenizer.ggml.merges", std::vector<std::int32_t>{1, 2});
       }},
      {"a pre-tokenizer as a number", [](GgufImage image, Random&) { return with(image, "tokenizer.ggml.pre", 3u); }},
      {"a switch as a number",
       [](GgufImage image, Random&) { return with(image, "tokenizer.ggml.add_bos_token", 1u); }},
  };
}

}  // namespace troupe::test
