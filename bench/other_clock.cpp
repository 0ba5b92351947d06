// Preloaded into a server, gives it a wall clock of its own: gettimeofday() is off by the microseconds that the first
// eight bytes of the file CLOCK_OFFSET_FILE say now.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const volatile std::int64_t* map_offset() {
  const char* const name = std::getenv("CLOCK_OFFSET_FILE");
  const int file = name == nullptr ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  void* const memory = mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<const volatile std::int64_t*>(memory);
}

}  // namespace

extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  static const volatile std::int64_t* const offset = map_offset();
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t us = now.tv_sec * 1'000'000 + now.tv_nsec / 1'000 + (offset == nullptr ? 0 : *offset);
  time->tv_sec = us / 1'000'000;
  time->tv_usec = us % 1'000'000;
  return 0;
}
