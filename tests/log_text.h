// A log in memory, replayed.
#pragma once

#include "shaper/replay/input.h"
#include "shaper/replay/replay_log.h"

namespace shaper {

inline tl::expected<LogReplay, std::string> replay_log(std::string_view text, std::string_view log_name,
                                                       const LogReplayOptions& options = {}) {
  // It is only read.
  const InputFile file(::fmemopen(const_cast<char*>(text.data()), text.size(), "rb"));
  return replay_log(file.get(), log_name, options);
}

}  // namespace shaper
