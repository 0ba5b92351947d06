// Which `Host` a request may name. A page of somebody else can have its own name lead to our address (DNS rebinding)
// and would then read what we answer; but its requests carry its name. So only names of ours are answered.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shaper/model/plain_text.h"

namespace shaper {

/// The name or address in a `Host` header, without port and brackets, in lower case. Nothing: that is no host.
[[nodiscard]] std::optional<std::string> host_in_header(std::string_view header);

class HostNames {
 public:
  /// Localhost and its addresses, the address that is listened at, and `names`. Whoever listens at all addresses of a
  /// host answers to every address: only a name can be made to lead elsewhere.
  HostNames(const EndPoint& listen, const std::vector<std::string>& names);

  /// `header` is the value of `Host`.
  [[nodiscard]] bool allow(std::string_view header) const;

 private:
  std::vector<std::string> names_;  ///< in lower case
  bool any_address_ = false;
};

}  // namespace shaper
