// Any bytes as a policy: an error with a place, or a policy that can be described. Messages must be safe to print.
#include <cstdlib>
#include <string_view>

#include "shaper/model/config.h"
#include "shaper/model/policy_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shaper::NameLookup names{[](const std::string& name) { return std::optional<std::uint32_t>{name.size()}; }, {}};
  const auto parsed = shaper::parse_policy(text, "policy.toml", names);
  if (parsed) {
    if (shaper::describe_policy(parsed->policy, parsed->host).empty()) std::abort();
    return 0;
  }
  const shaper::ConfigError& error = parsed.error();
  if (error.line < 1 || error.column < 1 || error.message.empty()) std::abort();
  for (const char c : error.message) {
    if (c < ' ' || c > '~') std::abort();
  }
  return 0;
}
