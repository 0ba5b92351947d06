// A file that a user names for a result: the old one or the whole new one is there, never a half.
#pragma once

#include <string>
#include <string_view>

namespace shaper::cli {

class OutputFile {
 public:
  /// `option` is for messages. Throws CommandError where `path` cannot become a file, before any work is done for it.
  OutputFile(std::string option, const std::string& path);

  /// Throws CommandError: it could not be written, and what was there is there still.
  void write(std::string_view text) const;

 private:
  std::string option_;
  std::string path_;  // of what a link leads to
};

}  // namespace shaper::cli
