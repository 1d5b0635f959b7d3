#include "runtime/text/printable.h"

#include <gtest/gtest.h>

namespace troupe::test {
namespace {

TEST(Printable, leaves_text_as_it_is) {
  EXPECT_EQ(printable("plain text, gr\xc3\xb6\xc3\x9f"
                      "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 \\x",
                      100),
            "plain text, gr\xc3\xb6\xc3\x9f"
            "e \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 \\x");
  EXPECT_EQ(printable("", 0), "");
}

TEST(Printable, escapes_what_a_terminal_would_obey) {
  EXPECT_EQ(printable("\x1b[31m\a\r\n\t\x7f", 100), "\\x1b[31m\\x07\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable(std::string_view("a\0b", 3), 100), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m \xc2\xa0",
                      100),
            "\\xc2\\x9b31m \xc2\xa0")
      << "C1 alone, no other of C2";
}

TEST(Printable, escapes_bytes_that_are_not_utf8) {
  EXPECT_EQ(printable("\xff\xfe \x9b \xe2\x82", 100), "\\xff\\xfe \\x9b \\xe2\\x82");
}

TEST(Printable, cuts_a_long_text_between_characters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable("ab\xe6\x97\xa5", 4), "ab...");
  EXPECT_EQ(printable("ab\xe6\x97\xa5", 5), "ab\xe6\x97\xa5");
  EXPECT_EQ(printable(std::string(1'000'000, '\n'), 2), "\\x0a\\x0a...");
}

}  // namespace
}  // namespace troupe::test
