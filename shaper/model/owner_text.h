// The owner of a flow as text: the words of a line for programs, and a short name for people.
#pragma once

#include <string>

#include "shaper/core/owner.h"
#include "shaper/model/line_reader.h"

namespace shaper {

/// Words `key=value`, a blank in front of each; names are percent-encoded, so that they may hold anything.
[[nodiscard]] std::string owner_words(const Owner& owner);

/// Reads such words up to the end of the line.
[[nodiscard]] Owner read_owner(LineReader& line);

/// `rsync[812] in backup.service`, `container web`: the process, and what it belongs to. Names as they are: whoever
/// shows them escapes them. Empty: nothing is known.
[[nodiscard]] std::string owner_name(const Owner& owner);

}  // namespace shaper
