// Any text is taken for an event log: it is replayed or refused in one line, and no core is driven out of its range.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/log_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto result = shaper::replay_log(text, "log");
  if (!result && !result.error().starts_with("log:")) std::abort();
  return 0;
}
