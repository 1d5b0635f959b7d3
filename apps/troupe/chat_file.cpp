#include "apps/troupe/chat_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "apps/troupe/options.h"
#include "runtime/replace_file.h"

namespace troupe::app {
namespace {

constexpr int kVersion = 1;
constexpr std::array kRoles = {"system", "user", "assistant"};

// Not a number: a JSON reader may keep only 53 bits of one.
std::string to_hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), number, 16).ptr};
}

Error malformed(const std::string& what) {
  return {ErrorCode::bad_input, "not a saved chat: " + what};
}

Result<std::uint64_t> fingerprint_in(const nlohmann::json& chat) {
  const auto text = chat.value("fingerprint", std::string("0"));
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number, 16);
  if (fault != std::errc() || stop != end) return malformed("its fingerprint '" + text + "' is no hexadecimal number");
  return number;
}

Result<std::vector<Message>> messages_in(const nlohmann::json& chat) {
  std::vector<Message> messages;
  for (const nlohmann::json& one : chat.at("messages")) {
    Message message{one.at("role").get<std::string>(), one.at("content").get<std::string>()};
    if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end())
      return malformed("message " + std::to_string(messages.size()) + " is of the unknown role '" + message.role + "'");
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<std::vector<TokenId>> tokens_in(const nlohmann::json& chat) {
  std::vector<TokenId> tokens;
  for (const nlohmann::json& one : chat.at("tokens")) {
    // nlohmann::json would turn 1.5, true and 2^40 into some token.
    if (!one.is_number_integer() || one < 0 || one > std::numeric_limits<TokenId>::max())
      return malformed("token " + std::to_string(tokens.size()) + " is no token's number");
    tokens.push_back(one.get<TokenId>());
  }
  return tokens;
}

// Throws nlohmann::json's exceptions for what is missing or of another type.
Result<SavedChat> read_chat(const nlohmann::json& json) {
  if (json.at("troupe_chat") != kVersion)
    return Error{ErrorCode::unsupported, "a chat of another version than " + std::to_string(kVersion)};
  auto fingerprint = fingerprint_in(json);
  if (!fingerprint) return fingerprint.error();
  auto messages = messages_in(json);
  if (!messages) return messages.error();
  auto tokens = tokens_in(json);
  if (!tokens) return tokens.error();
  return SavedChat{json.value("model", std::string()), *fingerprint, {std::move(*messages), std::move(*tokens)}};
}

}  // namespace

Result<void> save_chat(const std::string& path, const SavedChat& chat) {
  nlohmann::ordered_json json{{"troupe_chat", kVersion},
                              {"model", chat.model},
                              {"fingerprint", to_hex(chat.fingerprint)},
                              {"messages", nlohmann::json::array()},
                              {"tokens", chat.transcript.tokens}};
  for (const Message& message : chat.transcript.messages) {
    json["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  return replace_file(path, json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n');
}

Result<SavedChat> load_chat(const std::string& path) {
  std::error_code unknown;  // reading tells what is wrong with it
  const auto status = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return Error{ErrorCode::bad_input, path + " is not a regular file; name one that /save wrote"};
  auto text = read_text(path);
  if (!text) return text.error();
  try {
    auto chat = read_chat(nlohmann::json::parse(*text));
    if (!chat) return Error{chat.error().code, path + ": " + chat.error().message};
    return chat;
  } catch (const nlohmann::json::exception& fault) {
    return Error{ErrorCode::bad_input, path + ": " + malformed(fault.what()).message};
  }
}

}  // namespace troupe::app
