// The file that a replay reads. It is opened once and read from front to back, so it may be a pipe.
#pragma once

#include <cstddef>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace shaper {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using InputFile = std::unique_ptr<std::FILE, CloseFile>;

/// `-` is standard input. The error is one line with the path in it; an empty file is one.
[[nodiscard]] tl::expected<InputFile, std::string> open_input(const std::string& path);

/// By its first letter: no capture begins with that. What was looked at is still to be read.
[[nodiscard]] bool is_event_log(std::FILE* file);

/// The lines of a file, one at a time.
class Lines {
 public:
  explicit Lines(std::FILE* file) : file_(file) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines();

  /// The next one without its line feed, valid until the next call. Nothing at the end, or where the line feed is not
  /// written yet.
  [[nodiscard]] std::optional<std::string_view> next();

  [[nodiscard]] bool unfinished() const { return unfinished_; }
  [[nodiscard]] bool unreadable() const { return std::ferror(file_) != 0; }

 private:
  std::FILE* file_;
  char* text_ = nullptr;
  std::size_t allotted_ = 0;
  bool unfinished_ = false;
};

}  // namespace shaper
