// What `shaper check` prints, against golden files. After a meant change: SHAPER_WRITE_GOLDEN=1 policy_text_test.
#include "shaper/model/policy_text.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "shaper/model/config.h"
#include "shaper/model/match_text.h"

namespace shaper {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(PolicyText, SaysEverything) {
  const NameLookup names{[](const std::string&) { return std::optional<std::uint32_t>{34}; }, {}};
  for (const std::string name : {"complete", "smallest", "two-links"}) {
    const auto parsed = parse_policy(file_text(TEST_DATA "/policies/" + name + ".toml"), name, names);
    ASSERT_TRUE(parsed) << parsed.error().text();
    const std::string golden = TEST_GOLDEN "/policy-" + name + ".txt";
    if (std::getenv("SHAPER_WRITE_GOLDEN") != nullptr)
      std::ofstream(golden) << describe_policy(parsed->policy, parsed->host);
    EXPECT_EQ(describe_policy(parsed->policy, parsed->host), file_text(golden)) << golden;
  }
}

TEST(PolicyText, DescribesMatches) {
  EXPECT_EQ(describe_match({}), "everything");
  Match match;
  match.protocol = {kIcmp, kIcmpv6};
  match.mark = {{0x10, 0xf0}, {0, 0xffff'ffff}};
  match.user.unknown = true;
  match.none_of.resize(1);
  match.none_of[0].protocol = {kIcmpv6};
  match.none_of[0].dscp = {46, 7};
  EXPECT_EQ(describe_match(match),
            "protocol icmp, mark 0x10/0xf0 or 0x0, user unknown, not (protocol 58, dscp EF or 7)");
}

TEST(PolicyText, QuotesNamesOfOwnersThatAreNoWords) {
  Match match;
  match.cgroup = {"/system.slice/backup.service", "/a b"};
  match.unit = {"user@1000.service", "a\\x2db.scope"};
  match.process = {"tmux: server", "\x1b]0;x", "x\ny", "say \"hi\"", "<script>"};
  match.pid = {1234, 99};
  match.container = {"web", "a,b"};
  match.none_of.resize(1);
  match.none_of[0].process = {"rsync"};
  EXPECT_EQ(describe_match(match),
            "cgroup /system.slice/backup.service or \"/a b\", unit user@1000.service or \"a\\\\x2db.scope\", "
            "process \"tmux: server\" or \"\\x1b]0;x\" or \"x\\ny\" or \"say \\\"hi\\\"\" or \"<script>\", "
            "pid 1234 or 99, container web or \"a,b\", not (process rsync)");
}

TEST(PolicyText, SaysWhetherOwnersAreFoundOut) {
  const auto owners = [](const std::string& top, const std::string& match) {
    const auto parsed = parse_policy("version = 1\n" + top +
                                         "[[link]]\nname = \"up\"\ninterface = \"eth0\"\n[[class]]\nname = "
                                         "\"a\"\nlink = \"up\"\nmatch = " +
                                         match + "\n",
                                     "policy.toml");
    const std::string text = describe_policy(parsed.value().policy, parsed->host);
    const std::size_t line = text.find("\n  owners ") + 1;
    return text.substr(line, text.find('\n', line) - line);
  };
  EXPECT_EQ(owners("", "{ user = 0 }"), "  owners          off");
  EXPECT_EQ(owners("", "{ pid = 1 }"), "  owners          found out: keys of this policy ask for them");
  EXPECT_EQ(owners("owners = true\n", "{ user = 0 }"), "  owners          found out for all flows");
}

}  // namespace
}  // namespace shaper
