// What the tests of chat templates share: rendering in one line, and the rows of tests/data.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/text/chat_template.h"

namespace troupe::test {

// The clock of the reference rows: 2024-07-26 14:05:09.
TemplateClock fixed_clock();

// Parsed with that clock and rendered with `context` (JSON).
Result<Rendered> render(const std::string& source, const std::string& context = "{}", const RenderBudget& budget = {});
// The rendered text; "error: MESSAGE" if there is none.
std::string rendered(const std::string& source, const std::string& context = "{}", const RenderBudget& budget = {});

// The text with what is data between guillemets: "<|im_start|>user\n«Hello»<|im_end|>".
std::string marked(const std::string& source, const std::string& context);

// A file of tests/data, one JSON value a line.
std::vector<nlohmann::ordered_json> read_rows(const std::string& name);

}  // namespace troupe::test
