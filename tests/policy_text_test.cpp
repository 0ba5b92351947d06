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

}  // namespace
}  // namespace shaper
