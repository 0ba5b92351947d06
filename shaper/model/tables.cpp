#include "shaper/model/tables.h"

#include <fmt/format.h>

namespace shaper {

std::string terminal_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '\\') {
      safe += c;
    } else {
      safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return safe;
}

}  // namespace shaper
