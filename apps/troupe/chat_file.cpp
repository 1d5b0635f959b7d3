#include "apps/troupe/chat_file.h"

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/troupe/options.h"

namespace troupe::app {
namespace {

constexpr int kVersion = 1;

Error io_error(const std::string& path, const char* what) {
  return {ErrorCode::io, path + ": " + what};
}

}  // namespace

Result<void> save_chat(const std::string& path, const Transcript& transcript) {
  nlohmann::ordered_json chat{
      {"troupe_chat", kVersion}, {"messages", nlohmann::json::array()}, {"tokens", transcript.tokens}};
  for (const Message& message : transcript.messages) {
    chat["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  const std::string part = path + ".part";
  {
    std::ofstream file(part, std::ios::binary | std::ios::trunc);
    file << chat.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) {
      std::remove(part.c_str());
      return io_error(path, "cannot write");
    }
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) return io_error(path, "cannot rename the written file to this");
  return {};
}

Result<Transcript> load_chat(const std::string& path) {
  auto text = read_text(path);
  if (!text) return text.error();
  const auto chat = nlohmann::json::parse(*text, nullptr, false);
  try {
    if (chat.at("troupe_chat").get<int>() != kVersion) {
      return Error{ErrorCode::unsupported, path + ": a chat of another version than " + std::to_string(kVersion)};
    }
    Transcript transcript;
    for (const auto& message : chat.at("messages")) {
      transcript.messages.push_back({message.at("role").get<std::string>(), message.at("content").get<std::string>()});
    }
    transcript.tokens = chat.at("tokens").get<std::vector<TokenId>>();
    return transcript;
  } catch (const nlohmann::json::exception& error) {
    return Error{ErrorCode::bad_input, path + ": not a saved chat: " + error.what()};
  }
}

}  // namespace troupe::app
