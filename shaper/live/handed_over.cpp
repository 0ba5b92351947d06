#include "shaper/live/handed_over.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shaper/live/system_call.h"

namespace shaper {

Fd make_image_file() {
  return Fd(require(::memfd_create("shaper image", MFD_CLOEXEC), "memfd_create"));
}

/// One call takes 2 GB at most, which fits an int.
void write_image(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const int count = require(static_cast<int>(::write(file, bytes.data(), bytes.size())), "write");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string read_image(int file) {
  struct stat facts {};
  require(::fstat(file, &facts), "fstat");
  std::string bytes(static_cast<std::size_t>(facts.st_size), '\0');
  std::size_t done = 0;
  for (int count = 1; count > 0; done += static_cast<std::size_t>(count)) {
    char* const rest = bytes.data() + done;
    count = require(static_cast<int>(::pread(file, rest, bytes.size() - done, static_cast<off_t>(done))), "pread");
  }
  return bytes;
}

void keep_open(std::initializer_list<int> descriptors, bool open) {
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) ::fcntl(descriptor, F_SETFD, open ? 0 : FD_CLOEXEC);
  }
}

}  // namespace shaper
