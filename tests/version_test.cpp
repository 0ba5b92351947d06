// What is said about a daemon and a command of different versions. On real programs: netns-scripts/versions.
#include "shaper/version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shaper {
namespace {

using testing::HasSubstr;

TEST(Version, NothingIsSaidOfTheSame) {
  EXPECT_EQ(version_advice("0.1.0", "0.1.0"), "");
  EXPECT_EQ(version_advice(kVersion), "");
}

TEST(Version, AnOlderDaemonIsRestarted) {
  for (const char* older : {"0.9.0", "0.10.0", "0.10.1", "", "what"}) {
    EXPECT_THAT(version_advice(older, "0.10.2"), HasSubstr("'shaper restart'")) << older;
  }
}

TEST(Version, ForANewerDaemonThereIsANewerCommand) {
  for (const char* newer : {"0.10.3", "0.11.0", "1.0.0", "0.10.2.1"}) {
    EXPECT_THAT(version_advice(newer, "0.10.2"), HasSubstr("use the shaper that was installed with it")) << newer;
  }
}

TEST(Version, BothAreNamed) {
  EXPECT_EQ(version_advice("0.1.0", "0.2.0"),
            "the daemon is version 0.1.0 and this command 0.2.0: 'shaper restart' brings the daemon to it");
}

}  // namespace
}  // namespace shaper
