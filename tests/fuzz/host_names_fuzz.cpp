// A `Host` header of any bytes: what is read of it is read again as the same.
#include <cstdlib>
#include <string_view>

#include "shaper/web/host_names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view header(reinterpret_cast<const char*>(data), size);
  const auto host = shaper::host_in_header(header);
  if (!host) return 0;
  const bool ipv6 = host->find(':') != std::string::npos;
  if (shaper::host_in_header(ipv6 ? "[" + *host + "]" : *host) != host) std::abort();
  return 0;
}
