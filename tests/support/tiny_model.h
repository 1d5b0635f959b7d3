// TinyModel: a complete llama GGUF of about a megabyte at most, made from a seed: same parameters, same bytes,
// anywhere.
//
//     ScratchFolder folder;
//     const std::string path = write_tiny_model(tiny_model(DType::q4_k), folder.file("q4_k.gguf"));
//
// Byte-level BPE: ids 0 <|endoftext|>, 1 <|im_start|>, 2 <|im_end|> (the end of an answer), then one token a byte
// (id 3 + byte), then merged pieces of common English words. The weights are random, scaled so that greedy answers to
// different prompts differ, wander, and practically never hold a control token: an answer ends by its limit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/tensor.h"
#include "tests/support/gguf_image.h"

namespace troupe {

extern const char* const kChatMlTemplate;

struct TinyModel {
  int layers = 2;
  int width = 64;  // of all tensors' rows but ffn_down's: a multiple of the type's block
  int heads = 4;   // width / heads is the head's size, a multiple of 16
  int kv_heads = 2;
  int ffn = 128;    // a multiple of the type's block
  int vocab = 512;  // 259 or more
  int context = 1024;
  DType type = DType::f32;         // of every matrix
  std::optional<DType> head_type;  // of token_embd and output, if another
  bool tied = true;                // no output.weight: the head is the embedding
  double rope_base = 10000.0;
  double rope_linear_factor = 1.0;  // not 1: llama.rope.scaling.type is linear
  bool rope_factors = false;        // with a rope_freqs.weight tensor
  std::uint64_t seed = 1;
  std::string pre_tokenizer = "smollm";
  std::string chat_template = kChatMlTemplate;  // empty: none in the file
};

// The smallest shape that holds the type: K = 64, or 256 for the K-quants (whose block is 256).
TinyModel tiny_model(DType type);
// K = 576, 9 heads, 3 KV heads: the default model's shape. Not for the K-quants.
TinyModel tiny_model_576(DType type);

GgufImage tiny_model_image(const TinyModel& model);
// Writes the file and gives `path` back.
std::string write_tiny_model(const TinyModel& model, const std::string& path);

}  // namespace troupe
