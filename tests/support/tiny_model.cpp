#include "tests/support/tiny_model.h"

#include <cmath>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "kernels/quant/formats.h"
#include "tests/support/random.h"

namespace troupe {

const char* const kChatMlTemplate =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nYou are a tiny model.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

namespace {

constexpr int kControlTokens = 3;

constexpr const char* kWords =
    "the of and to in is that was for it with as his on be at by had not are but from or have an they which one you "
    "were her all she there would their we him been has when who will more no if out so said what up its about into "
    "than them can only other new some could time these two may then do first any my now such like our over man me "
    "even most made after also did many before must through back years where much your way well down should because "
    "each just those people how too little state good very make world still own see men work long here get both "
    "between life being under never day same another know while last might great year old off come since against go "
    "came right used take three";

// One printable character a byte (GPT-2's table): written here a second time, as a check on runtime/text.
std::string piece_of_byte(int byte) {
  const bool itself = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  int code = byte;
  if (!itself) code = byte <= 32 ? 256 + byte : byte <= 160 ? 256 + 33 + byte - 127 : 256 + 67;
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

struct Pieces {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> kinds;
  std::vector<std::string> merges;
};

// Each word grows from the left: " t", " th", " the". Then pairs of bytes until the vocabulary is full.
Pieces make_pieces(std::size_t vocab) {
  Pieces out{{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}, {3, 3, 3}, {}};
  for (int byte = 0; byte < 256; ++byte) out.tokens.push_back(piece_of_byte(byte));
  std::set<std::string> known;
  const auto merge = [&](const std::string& left, const std::string& right) {
    if (out.tokens.size() >= vocab || !known.insert(left + right).second) return;
    out.tokens.push_back(left + right);
    out.merges.push_back(left + " " + right);
  };
  std::istringstream words(kWords);
  for (std::string word; words >> word;) {
    std::string grown = piece_of_byte(' ');
    for (char letter : word) {
      merge(grown, std::string(1, letter));
      grown += letter;
    }
  }
  for (int left = 255; left >= 0; --left) {
    for (int right = 255; right >= 0; --right) merge(piece_of_byte(left), piece_of_byte(right));
  }
  out.kinds.resize(out.tokens.size(), 1);
  return out;
}

void set_vocabulary(GgufImage& image, const TinyModel& model) {
  const Pieces pieces = make_pieces(static_cast<std::size_t>(model.vocab));
  image.set("tokenizer.ggml.model", std::string("gpt2"));
  image.set("tokenizer.ggml.pre", model.pre_tokenizer);
  image.set("tokenizer.ggml.tokens", pieces.tokens);
  image.set("tokenizer.ggml.token_type", pieces.kinds);
  image.set("tokenizer.ggml.merges", pieces.merges);
  image.set("tokenizer.ggml.bos_token_id", 1u);
  image.set("tokenizer.ggml.eos_token_id", 2u);
  image.set("tokenizer.ggml.unknown_token_id", 0u);
  image.set("tokenizer.ggml.padding_token_id", 2u);
  image.set("tokenizer.ggml.add_bos_token", false);
  if (!model.chat_template.empty()) image.set("tokenizer.chat_template", model.chat_template);
}

void set_params(GgufImage& image, const TinyModel& model) {
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  image.set("general.architecture", std::string("llama"));
  image.set("general.name", std::string("tiny"));
  image.set("llama.block_count", u32(model.layers));
  image.set("llama.context_length", u32(model.context));
  image.set("llama.embedding_length", u32(model.width));
  image.set("llama.feed_forward_length", u32(model.ffn));
  image.set("llama.attention.head_count", u32(model.heads));
  image.set("llama.attention.head_count_kv", u32(model.kv_heads));
  image.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  image.set("llama.rope.dimension_count", u32(model.width / model.heads));
  image.set("llama.rope.freq_base", static_cast<float>(model.rope_base));
  image.set("llama.vocab_size", u32(model.vocab));
  if (model.rope_linear_factor == 1.0) return;
  image.set("llama.rope.scaling.type", std::string("linear"));
  image.set("llama.rope.scaling.factor", static_cast<float>(model.rope_linear_factor));
}

// Adds tensors of one model, drawing their values from its one generator in file order.
class Weights {
 public:
  Weights(GgufImage& image, const TinyModel& model) : image_(image), model_(model), random_(model.seed) {}

  void add_all() {
    const int width = model_.width, kv = width / model_.heads * model_.kv_heads;
    add_embedding("token_embd.weight");
    for (int i = 0; i < model_.layers; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      add_norm(block + "attn_norm.weight", false);
      add_matrix(block + "attn_q.weight", width, width, 1.5);
      add_matrix(block + "attn_k.weight", kv, width, 1.5);
      add_matrix(block + "attn_v.weight", kv, width, 1.0);
      add_matrix(block + "attn_output.weight", width, width, 2.0);
      add_norm(block + "ffn_norm.weight", false);
      add_matrix(block + "ffn_gate.weight", model_.ffn, width, 2.0);
      add_matrix(block + "ffn_up.weight", model_.ffn, width, 2.0);
      add_matrix(block + "ffn_down.weight", width, model_.ffn, 1.0);
    }
    add_norm("output_norm.weight", true);
    if (!model_.tied) add_embedding("output.weight");
    if (model_.rope_factors) add_rope_factors();
  }

 private:
  // Outputs of about `gain` for inputs of about 1.
  void add_matrix(const std::string& name, int rows, int cols, double gain) {
    std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
    const float scale = static_cast<float>(gain / std::sqrt(static_cast<double>(cols)));
    for (float& value : values) value = random_.bell() * scale;
    add(name, model_.type, rows, cols, values);
  }
  // Logits spread by sqrt(width); those of the control tokens stay near 0, so that none is ever the largest.
  void add_embedding(const std::string& name) {
    std::vector<float> values;
    for (int row = 0; row < model_.vocab; ++row) {
      const float scale = row < kControlTokens ? 0.125f : 1.0f;
      for (int col = 0; col < model_.width; ++col) values.push_back(random_.bell() * scale);
    }
    add(name, model_.head_type.value_or(model_.type), model_.vocab, model_.width, values);
  }
  // Both signs in the last norm: else a tied head would answer every token with itself.
  void add_norm(const std::string& name, bool both_signs) {
    std::vector<float> values;
    for (int i = 0; i < model_.width; ++i) {
      const float sign = both_signs && random_.below(2) == 0 ? -1.0f : 1.0f;
      values.push_back(sign * (1.0f + 0.25f * random_.signed_unit()));
    }
    add(name, DType::f32, 0, model_.width, values);
  }
  void add_rope_factors() {
    std::vector<float> values;
    const int pairs = model_.width / model_.heads / 2;
    for (int i = 0; i < pairs; ++i) values.push_back(1.0f + 7.0f * static_cast<float>(i) / static_cast<float>(pairs));
    add("rope_freqs.weight", DType::f32, 0, pairs, values);
  }
  // rows 0: a vector.
  void add(const std::string& name, DType type, int rows, int cols, const std::vector<float>& values) {
    const TypeTraits& traits_of_type = traits(type);
    std::string data(values.size() / traits_of_type.block * traits_of_type.bytes, '\0');
    quant::pack(type, values.data(), static_cast<std::int64_t>(values.size()),
                reinterpret_cast<std::byte*>(data.data()));
    std::vector<std::uint64_t> dims{static_cast<std::uint64_t>(cols)};
    if (rows > 0) dims.push_back(static_cast<std::uint64_t>(rows));
    image_.add_tensor(name, dims, traits_of_type.gguf_type, std::move(data));
  }

  GgufImage& image_;
  const TinyModel& model_;
  test::Random random_;
};

}  // namespace

TinyModel tiny_model(DType type) {
  TinyModel model;
  model.type = type;
  if (traits(type).block == 256) model.width = model.ffn = 256;
  return model;
}

TinyModel tiny_model_576(DType type) {
  TinyModel model;
  model.type = type;
  model.width = 576;
  model.heads = 9;
  model.kv_heads = 3;
  model.ffn = 192;
  return model;
}

GgufImage tiny_model_image(const TinyModel& model) {
  GgufImage image;
  set_params(image, model);
  set_vocabulary(image, model);
  Weights(image, model).add_all();
  return image;
}

std::string write_tiny_model(const TinyModel& model, const std::string& path) {
  write_file(path, tiny_model_image(model).bytes());
  return path;
}

}  // namespace troupe
