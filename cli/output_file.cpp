#include "cli/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "cli/commands.h"
#include "shaper/live/fd.h"

namespace shaper::cli {
namespace {

/// A new file beside the one that it will replace; removed unless it did.
class Draft {
 public:
  explicit Draft(const std::string& path) : name_(path + ".XXXXXX"), file_(mkostemp(name_.data(), O_CLOEXEC)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    if (file_ && !name_.empty()) unlink(name_.c_str());
  }

  [[nodiscard]] bool exists() const { return static_cast<bool>(file_); }

  [[nodiscard]] bool write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t written = ::write(file_.get(), text.data(), text.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }

  [[nodiscard]] bool replace(const std::string& path) {
    const mode_t hidden = umask(0);
    umask(hidden);
    if (fchmod(file_.get(), 0666 & ~hidden) != 0 || rename(name_.c_str(), path.c_str()) != 0) return false;
    name_.clear();
    return true;
  }

 private:
  std::string name_;
  Fd file_;
};

[[noreturn]] void fail(const std::string& path) {
  throw CommandError(ExitCode::failed, fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

OutputFile::OutputFile(std::string option, const std::string& path) : option_(std::move(option)), path_(path) {
  if (path == "-") {
    throw CommandError(ExitCode::wrong_usage,
                       fmt::format("{}: standard output is taken by the tables; name a file", option_));
  }
  std::error_code none_there;
  if (const auto real = std::filesystem::canonical(path, none_there); !none_there) path_ = real.string();
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    throw CommandError(ExitCode::failed, fmt::format("{}: {} is there and is not a file", option_, path_));
  }
  if (!Draft(path_).exists()) fail(path_);
}

void OutputFile::write(std::string_view text) const {
  Draft draft(path_);
  if (!draft.exists() || !draft.write(text) || !draft.replace(path_)) fail(path_);
}

}  // namespace shaper::cli
