#include "tests/text/template_lab.h"

#include <fstream>

namespace troupe::test {

TemplateClock fixed_clock() {
  return [] {
    std::tm time{};
    time.tm_year = 124;
    time.tm_mon = 6;
    time.tm_mday = 26;
    time.tm_hour = 14;
    time.tm_min = 5;
    time.tm_sec = 9;
    time.tm_wday = 5;
    time.tm_yday = 207;
    return time;
  };
}

Result<Rendered> render(const std::string& source, const std::string& context, const RenderBudget& budget) {
  auto parsed = ChatTemplate::parse(source, fixed_clock());
  if (!parsed) return parsed.error();
  return parsed->render_json(context, budget);
}

std::string rendered(const std::string& source, const std::string& context, const RenderBudget& budget) {
  const auto result = render(source, context, budget);
  return result ? result->text() : "error: " + result.error().message;
}

std::string marked(const std::string& source, const std::string& context) {
  const auto result = render(source, context);
  if (!result) return "error: " + result.error().message;
  std::string text;
  for (const RenderedPart& part : result->parts) text += part.is_data ? "«" + part.text + "»" : part.text;
  return text;
}

std::vector<nlohmann::ordered_json> read_rows(const std::string& name) {
  std::ifstream file(TROUPE_TEST_DATA "/" + name);
  std::vector<nlohmann::ordered_json> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(nlohmann::ordered_json::parse(line));
  return rows;
}

}  // namespace troupe::test
