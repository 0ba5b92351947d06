// The program `shaper` in a folder of its own: SHAPER_BIN, or the one in the folder above the tests'.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace shaper {

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string program() {
  if (const char* given = std::getenv("SHAPER_BIN")) return given;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "shaper";
}

struct Ended {
  int code = 0;
  std::string output;
  std::string errors;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "shaper-cli-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// `arguments` for the shell, so quoted where needed.
  Ended shaper(const std::string& arguments) const { return shell("'" + program() + "' " + arguments); }

  Ended shell(const std::string& command) const {
    const int status = std::system(("cd '" + folder_.string() + "' && " + command + " >out 2>err").c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, content_of(folder_ / "out"), content_of(folder_ / "err")};
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return name;
  }

  static std::string capture(const std::string& name) { return std::string(TEST_DATA) + "/captures/" + name; }

  std::filesystem::path folder_;
};

inline void expect_one_line(const Ended& ended) {
  EXPECT_EQ(std::count(ended.errors.begin(), ended.errors.end(), '\n'), 1) << ended.errors;
  EXPECT_EQ(ended.output, "");
}

}  // namespace shaper
