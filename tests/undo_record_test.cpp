// The undo record's text: what is written is read back, what is broken is told and never fatal.
#include "shaper/live/undo_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace shaper {
namespace {

using testing::HasSubstr;

UndoRecord example() {
  UndoRecord record;
  record.boot = "4d1a5c9e-0f5e-4b7e-9f0a-6a1f0c2b7d11";
  record.cookie = 18'446'744'073'709'551'615U;
  record.backend = Backend::legacy;
  record.queues = {{0, 41000, 41001}, {1, 65534, 65535}};
  record.policy_file = "/etc/shaper/shaper.toml";
  return record;
}

std::string content_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

/// A folder of its own for each test, gone at the end.
class UndoRecordFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "undo_record_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/undo"; }

  std::string folder_;
};

TEST(UndoRecord, TextIsTheGoldenOne) {
  EXPECT_EQ(format_undo_record(example()), content_of(std::string{TEST_GOLDEN} + "/undo_record.txt"));
}

TEST(UndoRecord, WhatIsWrittenIsReadBack) {
  UndoRecord record = example();
  EXPECT_EQ(parse_undo_record(format_undo_record(record)), record);
  record.backend = Backend::nft;
  record.queues.clear();
  for (const std::string path : {"", "/a b", "/tmp/two\nlines", "/back\\slash", "/n\\n", "/x\nboot = no\n", "/ = "}) {
    record.policy_file = path;
    EXPECT_EQ(parse_undo_record(format_undo_record(record)), record) << path;
  }
}

TEST(UndoRecord, KeysOfALaterVersionArePassedOver) {
  EXPECT_EQ(parse_undo_record(format_undo_record(example()) + "colour = blue\n"), example());
}

TEST(UndoRecord, ABrokenRecordIsAnErrorWithItsLine) {
  const std::string title = "shaper undo record 1\n";
  const std::array<std::array<std::string, 3>, 9> cases{{
      {"an empty file", "", "line 1"},
      {"another file", "*mangle\nCOMMIT\n", "line 1"},
      {"a version that we cannot know", "shaper undo record 2\npolicy_file = \n", "line 1"},
      {"a title alone", title, "line 1: the record ends early"},
      {"cut in the middle of a line", title + "boot = x\npolicy_file = n", "line 3"},
      {"cut after a whole line", title + "boot = x\n", "line 2: the record ends early"},
      {"a back end that does not exist", title + "backend = host\npolicy_file = \n", "line 2: bad value"},
      {"a queue number above 16 bits", title + "queues = 0 65536 1\npolicy_file = \n", "line 2: bad value"},
      {"a queue pair of two", title + "queues = 0 1\npolicy_file = \n", "line 2: bad value"},
  }};
  for (const auto& [what, text, message] : cases) {
    const auto record = parse_undo_record(text);
    ASSERT_FALSE(record) << what;
    EXPECT_THAT(record.error(), HasSubstr(message)) << what;
  }
}

TEST(UndoRecord, NoRandomDamageIsFatal) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random{seed};
  const std::string good = format_undo_record(example());
  for (int round = 0; round < 2000; ++round) {
    std::string text = good.substr(0, random() % (good.size() + 1));
    for (int n = 0; n < 3 && !text.empty(); ++n) text[random() % text.size()] = static_cast<char>(random());
    const auto record = parse_undo_record(text);
    EXPECT_TRUE(record || record.error().find("line ") == 0) << text;
  }
}

TEST(UndoRecord, OnlyARecordOfThisBootAndNamespaceTellsOfACrash) {
  const UndoRecord open = example();
  EXPECT_TRUE(open.tells_of_a_crash(open.boot, open.cookie));
  EXPECT_FALSE(open.tells_of_a_crash("another boot", open.cookie));
  EXPECT_FALSE(open.tells_of_a_crash(open.boot, open.cookie - 1));
}

TEST_F(UndoRecordFile, IsPrivateAndReplacedAsAWhole) {
  EXPECT_EQ(read_undo_record(path()), std::nullopt) << "no file, no record";
  const mode_t before = umask(0);
  ASSERT_TRUE(write_undo_record(path(), example()));
  umask(before);
  std::ofstream{path() + ".new"} << "left by a crash";
  UndoRecord other = example();
  other.policy_file = "/another";
  ASSERT_TRUE(write_undo_record(path(), other));

  EXPECT_EQ(read_undo_record(path()), other);
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
  struct stat status {};
  ASSERT_EQ(stat(path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(UndoRecordFile, ALinkIsNeverFollowed) {
  const std::string target = folder_ + "/target";
  std::ofstream{target} << "precious";
  std::filesystem::create_symlink(target, path());
  EXPECT_FALSE(read_undo_record(path()));
  std::filesystem::create_symlink(target, path() + ".new");
  ASSERT_TRUE(write_undo_record(path(), example()));
  EXPECT_EQ(content_of(target), "precious");
  EXPECT_EQ(read_undo_record(path()), example());
}

TEST_F(UndoRecordFile, WhatIsNoFileIsRefusedInOneLine) {
  std::filesystem::create_directory(path());
  const auto record = read_undo_record(path());
  ASSERT_FALSE(record);
  EXPECT_THAT(record.error(), HasSubstr(path()));
  EXPECT_FALSE(write_undo_record(folder_ + "/missing/undo", example()));
}

}  // namespace
}  // namespace shaper
