// Which `Host` headers are answered: DNS rebinding comes with a name of its own.
#include "shaper/web/host_names.h"

#include <gtest/gtest.h>

namespace shaper {
namespace {

TEST(HostNames, TheHostIsReadWithoutItsPort) {
  const struct {
    const char* header;
    const char* host;  // null: none
  } cases[]{
      {"localhost", "localhost"},
      {"LocalHost:9469", "localhost"},
      {"127.0.0.1:9469", "127.0.0.1"},
      {"[::1]:9469", "::1"},
      {"[0:0:0:0:0:0:0:1]", "::1"},
      {"router.example.org:80", "router.example.org"},
      {"", nullptr},
      {":80", nullptr},
      {"::1", nullptr},
      {"[::1", nullptr},
      {"[::1]x", nullptr},
      {"[localhost]", nullptr},
      {"localhost:", nullptr},
      {"localhost:http", nullptr},
      {"localhost:99999", nullptr},
      {"localhost:80:80", nullptr},
      {"local host", nullptr},
      {"localhost/x", nullptr},
      {"user@localhost", nullptr},
      {"localhost,evil.example", nullptr},
      {"<script>", nullptr},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(host_in_header(one.header).value_or("none"), one.host == nullptr ? "none" : one.host) << one.header;
  }
}

TEST(HostNames, OnlyNamesOfOursAreAnswered) {
  const HostNames names(*parse_end_point("10.0.0.5:9469"), {"Router", "shaper.example.org"});
  for (const char* header :
       {"localhost:1", "127.0.0.1", "[::1]:9469", "10.0.0.5:9469", "router", "ROUTER:9469", "shaper.example.org"}) {
    EXPECT_TRUE(names.allow(header)) << header;
  }
  for (const char* header : {"evil.example", "10.0.0.6:9469", "router.evil.example", "localhost.evil.example",
                             "shaper.example.org.", "", "[fd00::1]"}) {
    EXPECT_FALSE(names.allow(header)) << header;
  }
}

TEST(HostNames, WhoListensAtAllAddressesAnswersToEachButToNoFurtherName) {
  for (const char* all : {"0.0.0.0:9469", "[::]:9469"}) {
    const HostNames names(*parse_end_point(all), {});
    EXPECT_TRUE(names.allow("10.0.0.6:9469"));
    EXPECT_TRUE(names.allow("[fd00::1]"));
    EXPECT_FALSE(names.allow("evil.example"));
  }
}

}  // namespace
}  // namespace shaper
