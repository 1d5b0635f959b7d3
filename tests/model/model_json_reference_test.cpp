// The default model's file against what independent programs read from it (tests/data/reference/model.json: metadata,
// tensor table, and the sha256 of every tensor's float32 values, by the Python packages gguf and numpy).
// TROUPE_MODEL names the model file.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <openssl/evp.h>
#include <string>
#include <vector>

#include "kernels/quant/formats.h"
#include "runtime/load/vocabulary_data.h"
#include "runtime/load/weight_loader.h"

namespace troupe {
namespace {

using nlohmann::json;

class Sha256 {
 public:
  Sha256() : state_(EVP_MD_CTX_new(), EVP_MD_CTX_free) { EVP_DigestInit_ex(state_.get(), EVP_sha256(), nullptr); }
  void add(const void* data, std::size_t bytes) { EVP_DigestUpdate(state_.get(), data, bytes); }
  std::string hex() {
    unsigned char digest[32];
    EVP_DigestFinal_ex(state_.get(), digest, nullptr);
    std::string out;
    for (unsigned char byte : digest) {
      out += "0123456789abcdef"[byte >> 4];
      out += "0123456789abcdef"[byte & 15];
    }
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> state_;
};

std::string type_name(const GgufValue& value) {
  static constexpr const char* kNames[] = {"UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
                                           "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};
  const std::string name = kNames[static_cast<int>(value.type)];
  if (value.type != GgufType::array) return name;
  return name + "/" + kNames[static_cast<int>(std::get<GgufArray>(value.value).element)];
}

json array_value(const GgufArray& array) {
  return std::visit([](const auto& values) { return json(values); }, array.values);
}

json scalar_value(const GgufValue& value) {
  return std::visit(
      [](const auto& held) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, GgufArray>) {
          return array_value(held);
        } else {
          return held;
        }
      },
      value.value);
}

// Long arrays stand there by their length, first and last elements; floats with the bytes of the float32.
void expect_value(const GgufValue& value, const json& expected) {
  const json actual = scalar_value(value);
  if (expected.is_object() && expected.contains("float32_hex")) {
    const float number = static_cast<float>(actual.get<double>());
    unsigned char bytes[4];
    std::memcpy(bytes, &number, 4);
    char hex[9];
    std::snprintf(hex, sizeof hex, "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
    EXPECT_EQ(std::string(hex), expected["float32_hex"]);
  } else if (expected.is_object()) {
    ASSERT_EQ(actual.size(), expected["array_len"].get<std::size_t>());
    const json &first = expected["first"], &last = expected["last"];
    for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(actual[i], first[i]);
    for (std::size_t i = 0; i < last.size(); ++i) EXPECT_EQ(actual[actual.size() - last.size() + i], last[i]);
  } else {
    EXPECT_EQ(actual, expected);
  }
}

class ModelJsonReference : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* path = std::getenv("TROUPE_MODEL");
    ASSERT_NE(path, nullptr) << "set TROUPE_MODEL to the default model's file";
    auto file = Gguf::open(path);
    ASSERT_TRUE(file) << file.error().message;
    file_ = std::make_unique<Gguf>(std::move(*file));
    std::ifstream reference(TROUPE_TEST_DATA "/reference/model.json");
    reference_ = json::parse(reference);
  }
  static void TearDownTestSuite() { file_.reset(); }
  void SetUp() override { ASSERT_NE(file_, nullptr); }

  static inline std::unique_ptr<Gguf> file_;
  static inline json reference_;
};

TEST_F(ModelJsonReference, all_metadata_is_equal) {
  const json& metadata = reference_["metadata"];
  EXPECT_EQ(file_->version(), metadata["GGUF.version"]["value"].get<std::uint32_t>());
  EXPECT_EQ(file_->tensors().size(), metadata["GGUF.tensor_count"]["value"].get<std::size_t>());
  EXPECT_EQ(file_->metadata().size(), metadata["GGUF.kv_count"]["value"].get<std::size_t>());
  EXPECT_EQ(file_->file_bytes(), reference_["file"]["n_bytes"].get<std::uint64_t>());
  std::size_t compared = 0;
  for (const auto& [key, expected] : metadata.items()) {
    if (key.starts_with("GGUF.")) continue;
    SCOPED_TRACE(key);
    const GgufValue* value = file_->find(key);
    ASSERT_NE(value, nullptr);
    EXPECT_EQ(type_name(*value), expected["type"]);
    expect_value(*value, expected["value"]);
    ++compared;
  }
  EXPECT_EQ(compared, file_->metadata().size());
}

TEST_F(ModelJsonReference, every_tensor_has_the_values_of_the_independent_dequantizer) {
  const json& tensors = reference_["tensors"];
  ASSERT_EQ(file_->tensors().size(), tensors.size());
  std::vector<std::byte> bytes;
  std::vector<float> values;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const GgufTensor& tensor = file_->tensors()[i];
    const json& expected = tensors[i];
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(tensor.name, expected["name"]);
    EXPECT_EQ(json(tensor.dims), expected["ne"]);
    EXPECT_EQ(traits(tensor.type).name, expected["type"].get<std::string>());
    EXPECT_EQ(tensor.offset, expected["offset"].get<std::uint64_t>());
    EXPECT_EQ(tensor.bytes, expected["n_bytes"].get<std::uint64_t>());
    bytes.resize(static_cast<std::size_t>(tensor.bytes));
    ASSERT_TRUE(file_->read(tensor, 0, bytes));
    values.resize(static_cast<std::size_t>(tensor.rows * tensor.cols));
    quant::dequantize(tensor.type, bytes.data(), tensor.rows * tensor.cols, values.data());
    Sha256 hash;
    hash.add(values.data(), values.size() * sizeof(float));
    EXPECT_EQ(hash.hex(), expected["f32_sha256"]);
  }
}

TEST_F(ModelJsonReference, every_token_stands_for_the_right_bytes) {
  auto data = read_vocabulary(*file_);
  ASSERT_TRUE(data) << data.error().message;
  const json &special = reference_["special"], &vocab = reference_["vocab"];
  EXPECT_EQ(data->bos, special["bos"].get<TokenId>());
  EXPECT_EQ(data->eos, special["eos"].get<TokenId>());
  EXPECT_EQ(data->unknown, special["unk"].get<TokenId>());
  EXPECT_EQ(data->padding, special["pad"].get<TokenId>());
  EXPECT_EQ(data->add_bos, special["add_bos"].get<bool>());
  EXPECT_EQ(data->merges.size(), vocab["n_merges"].get<std::size_t>());
  auto vocabulary = Vocabulary::create(std::move(*data));
  ASSERT_TRUE(vocabulary) << vocabulary.error().message;
  ASSERT_EQ(vocabulary->size(), vocab["n"].get<std::int64_t>());
  Sha256 hash;
  for (TokenId id = 0; id < vocabulary->size(); ++id) {
    const std::string_view bytes = vocabulary->bytes(id);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    hash.add(&size, sizeof size);
    hash.add(bytes.data(), bytes.size());
  }
  EXPECT_EQ(hash.hex(), vocab["pieces_sha256"]);
}

// "Resident at rest": what load_weights keeps, and what the vocabulary keeps, on the CPU's layout.
TEST_F(ModelJsonReference, weights_are_held_once) {
  auto isa = best_isa();
  ASSERT_TRUE(isa) << isa.error().message;
  const auto backend = make_cpu_backend(*isa, 2);
  std::vector<WeightRequest> requests;
  for (const GgufTensor& tensor : file_->tensors()) {
    if (tensor.dims.size() == 2) requests.push_back({tensor.name, tensor.rows, tensor.cols});
  }
  const auto set = load_weights(*file_, *backend, requests, {});
  ASSERT_TRUE(set) << set.error().message;
  const double ratio = static_cast<double>(set->memory.size()) / static_cast<double>(file_->tensor_bytes());
  std::printf("%zu bytes of memory for %llu of tensors: %.4f\n", set->memory.size(),
              static_cast<unsigned long long>(file_->tensor_bytes()), ratio);
  EXPECT_LE(ratio, 1.05);
}

}  // namespace
}  // namespace troupe
