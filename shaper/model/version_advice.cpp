#include <fmt/format.h>

#include <charconv>
#include <vector>

#include "shaper/version.h"

namespace shaper {
namespace {

/// "0.10.2" -> 0, 10, 2.
std::vector<unsigned> numbers(std::string_view version) {
  std::vector<unsigned> result;
  const char* const end = version.data() + version.size();
  for (const char* at = version.data(); at < end; ++at) {
    unsigned number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) break;
    result.push_back(number);
    at = stop;
  }
  return result;
}

}  // namespace

std::string version_advice(std::string_view daemon, std::string_view command) {
  if (daemon == command) return "";
  if (numbers(daemon) < numbers(command)) {
    return fmt::format("the daemon is version {} and this command {}: 'shaper restart' brings the daemon to it", daemon,
                       command);
  }
  return fmt::format("the daemon is version {} and this command only {}: use the shaper that was installed with it",
                     daemon, command);
}

}  // namespace shaper
