// What a process leaves to the one that goes on: descriptors that stay open, and an image (core/image.h) in a file in
// memory.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "shaper/live/fd.h"

namespace shaper {

/// An empty file in memory. Throws std::system_error.
[[nodiscard]] Fd make_image_file();

/// Appends to a file of make_image_file(). Throws std::system_error.
void write_image(int file, std::string_view bytes);

/// All of it, from any process that has it. Throws std::system_error.
[[nodiscard]] std::string read_image(int file);

/// Descriptors stay open behind exec, or are closed by it; negative ones are passed over.
void keep_open(std::initializer_list<int> descriptors, bool open = true);

}  // namespace shaper
