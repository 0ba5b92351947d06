// Errors of system calls at start-up: an exception with the call's name, caught in main.
#pragma once

#include <cerrno>
#include <string>
#include <system_error>

namespace shaper {

/// Passes the result on, or throws with errno's meaning and `call`.
inline int require(int result, const std::string& call) {
  if (result < 0) throw std::system_error(errno, std::system_category(), call);
  return result;
}

}  // namespace shaper
