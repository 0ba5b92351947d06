// Keys of a match that ask who sends, good and bad, and buckets of owners.
#include <gmock/gmock.h>

#include "tests/bad_policies.h"

namespace shaper {
namespace {

using testing::ElementsAre;

Policy accepted(const std::string& text) {
  const auto policy = parse_policy(text, "policy.toml");
  if (policy) return policy->policy;
  ADD_FAILURE() << policy.error().text() << "\n" << text;
  return {};
}

Match match_of(const std::string& keys) {
  return accepted(kClass + "match = { " + keys + " }\n").classes.at(0).match.at(0);
}

TEST(Owners, ACgroupIsAPathFromTheRoot) {
  const auto paths = [](const std::string& value) { return match_of("cgroup = " + value).cgroup; };
  for (const std::string value : {"\"a.slice/b\"", "\"/a.slice/b\"", "\"a.slice/b/\"", "\"/a.slice/b/\""}) {
    EXPECT_THAT(paths(value), ElementsAre("/a.slice/b")) << value;
  }
  EXPECT_THAT(paths("\"/\""), ElementsAre("/")) << "every cgroup is below it";
  EXPECT_THAT(paths("[\"x\", \"a b/..c/" + std::string(255, 'd') + "\"]"),
              ElementsAre("/x", "/a b/..c/" + std::string(255, 'd')));
}

TEST(Owners, ANameMayHaveLettersOfAnyAlphabet) {
  EXPECT_THAT(match_of("process = [\"bäckup\", \"ба \u00a0\"]").process, ElementsAre("bäckup", "ба \u00a0"));
}

TEST(Owners, AShortWordThatIsNoIdNamesAContainer) {
  EXPECT_THAT(match_of("container = [\"web\", \"dead\", 1234]").container, ElementsAre("web", "dead", "1234"));
}

TEST(Owners, BucketsMayBeOfOwners) {
  const std::vector<std::pair<std::string, EachBy>> words{{"user", EachBy::user},
                                                          {"cgroup", EachBy::cgroup},
                                                          {"process", EachBy::process},
                                                          {"container", EachBy::container}};
  for (const auto& [word, by] : words) {
    const std::string limit = "[[limit]]\nname = \"a\"\nrate = \"8mbit\"\nby = \"" + word + "\"\n";
    const Policy policy = accepted(kClass + "each = { by = \"" + word + "\", rate = \"1mbit\" }\n");
    EXPECT_EQ(policy.classes.at(0).each, (Each{{by}, {1'000'000}, kDefaultBurst})) << word;
    EXPECT_EQ(accepted(kClass + ("limits = \"a\"\n" + limit)).limits.at(0).by, KeyPolicy{by}) << word;
  }
  const Policy cluster = accepted(kClass +
                                  "limits = \"a\"\n[cluster]\nredis = \"/r\"\n[[limit]]\nname = \"a\"\nrate = "
                                  "\"8mbit\"\nby = \"user\"\nscope = \"cluster\"\n");
  EXPECT_EQ(cluster.limits.at(0).by, KeyPolicy{EachBy::user});
}

TEST(Owners, OfAMatchSayWhatIsWrong) {
  const std::string long_name(256, 'a');
  expect_errors(
      {
          {"no cgroup", "match = { cgroup = \"\" }\n", "8:20: a part of this cgroup's path is empty"},
          {"no cgroups", "match = { cgroup = [] }\n", "8:20: \"cgroup\" is an empty list"},
          {"a cgroup that is true", "match = { cgroup = true }\n",
           "8:20: \"cgroup\" takes texts and whole numbers, or a list of them"},
          {"only slashes", "match = { cgroup = \"//\" }\n", "8:20: a part of this cgroup's path is empty"},
          {"two slashes in the middle", "match = { cgroup = \"a//b\" }\n",
           "8:20: a part of this cgroup's path is empty"},
          {"two slashes at the end", "match = { cgroup = \"a//\" }\n", "8:20: a part of this cgroup's path is empty"},
          {"this folder", "match = { cgroup = \"./a\" }\n", "8:20: a part of this cgroup's path is relative"},
          {"the folder above", "match = { cgroup = [\"a\", \"a/..\"] }\n",
           "8:26: a part of this cgroup's path is relative"},
          {"a cgroup with an escape", "match = { cgroup = \"a/\\u001b]0;x\" }\n",
           "8:20: a part of this cgroup's path has a control character"},
          {"a cgroup with a line feed", "match = { cgroup = \"a\\n\" }\n",
           "8:20: a part of this cgroup's path has a control character"},
          {"a cgroup of 256 bytes", "match = { cgroup = \"a/" + long_name + "\" }\n",
           "8:20: a part of this cgroup's path is longer than 255 bytes"},
          {"a folder of the file system", "match = { cgroup = \"/sys/fs/cgroup/system.slice\" }\n",
           "8:20: a cgroup's path begins below /sys/fs/cgroup, as in \"system.slice/backup.service\""},
          {"no unit", "match = { unit = \"\" }\n", "8:18: this name in \"unit\" is empty"},
          {"a unit with a path", "match = { unit = \"system.slice/backup.service\" }\n",
           "8:18: a unit is one part of a cgroup's path; for a path there is \"cgroup\""},
          {"a unit without its kind", "match = { unit = \"backup\" }\n",
           "8:18: a unit is named with its kind, as \"backup.service\""},
          {"a unit that ends in a dot", "match = { unit = \"backup.\" }\n",
           "8:18: a unit is named with its kind, as \"backup.service\""},
          {"the folder above as a unit", "match = { unit = \"..\" }\n",
           "8:18: a unit is named with its kind, as \"backup.service\""},
          {"a unit with a tab", "match = { unit = \"a\\tb.service\" }\n",
           "8:18: this name in \"unit\" has a control character"},
          {"no process", "match = { process = \"\" }\n", "8:21: this name in \"process\" is empty"},
          {"a process with a path", "match = { process = \"/usr/bin/rsync\" }\n",
           "8:21: a process is named without its path, as \"ps -o comm\" shows it"},
          {"a process with a rubout", "match = { process = \"a\\u007f\" }\n",
           "8:21: this name in \"process\" has a control character"},
          {"a process with CSI in one character", "match = { process = \"a\\u009b31m\" }\n",
           "8:21: this name in \"process\" has a control character"},
          {"a process of 256 bytes", "match = { process = \"" + long_name + "\" }\n",
           "8:21: this name in \"process\" is longer than 255 bytes"},
          {"process zero", "match = { pid = 0 }\n", "8:17: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"a negative process", "match = { pid = -1 }\n",
           "8:17: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"a number that no process has", "match = { pid = [1, 4194304] }\n",
           "8:21: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"a range of processes", "match = { pid = \"1-5\" }\n",
           "8:17: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"a process by name", "match = { pid = \"rsync\" }\n",
           "8:17: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"no container", "match = { container = \"\" }\n", "8:23: this name in \"container\" is empty"},
          {"three digits of an id", "match = { container = \"3fa\" }\n",
           "8:23: many containers may have an id that begins so: write 4 digits of it at least"},
          {"one digit of an id, as a number", "match = { not = { container = 7 } }\n",
           "8:31: many containers may have an id that begins so: write 4 digits of it at least"},
          {"a container with a slash", "match = { container = \"pod/web\" }\n",
           "8:23: a container's name has no slash"},
          {"a container with an escape", "match = { container = \"\\u001b]0;x\" }\n",
           "8:23: this name in \"container\" has a control character"},
          {"of two errors the first", "match = { pid = 0, unit = \"x\" }\n",
           "8:17: \"pid\" must be the number of a process, from 1 to 4194303"},
          {"a class that an earlier one covers",
           "match = { cgroup = \"system.slice\" }\n[[class]]\nname = \"late\"\nlink = \"up\"\nmatch = { cgroup = "
           "\"/system.slice/backup.service\", process = \"rsync\" }\n",
           "9:1: class \"late\" can never match: class \"web\" takes all of its packets first"},
      },
      kClass);
}

}  // namespace
}  // namespace shaper
