#include "shaper/replay/input.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "shaper/model/event_log.h"

namespace shaper {
namespace {

/// The next byte or EOF, which stays to be read.
int peek(std::FILE* file) {
  return std::ungetc(std::fgetc(file), file);
}

}  // namespace

tl::expected<InputFile, std::string> open_input(const std::string& path) {
  const auto failure = [&path](std::string_view what) { return tl::unexpected(fmt::format("{}: {}", path, what)); };
  InputFile file(path == "-" ? stdin : std::fopen(path.c_str(), "rbe"));
  if (file == nullptr) return failure(std::strerror(errno));
  errno = 0;
  if (peek(file.get()) != EOF) return file;
  return failure(std::ferror(file.get()) != 0 ? std::strerror(errno)
                                              : "the file is empty; give a capture written by tcpdump -w");
}

bool is_event_log(std::FILE* file) {
  return peek(file) == kFirstEventLine.front();
}

Lines::~Lines() {
  std::free(text_);
}

std::optional<std::string_view> Lines::next() {
  const ssize_t length = ::getline(&text_, &allotted_, file_);
  if (length < 0) return std::nullopt;
  const std::string_view line(text_, static_cast<std::size_t>(length));
  unfinished_ = !line.ends_with('\n');
  if (unfinished_) return std::nullopt;
  return line.substr(0, line.size() - 1);
}

}  // namespace shaper
