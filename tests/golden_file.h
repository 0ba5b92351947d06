// Texts that are compared to the letter, in tests/golden.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

namespace shaper {

inline std::string golden(const std::string& name) {
  std::ifstream file(std::string(TEST_GOLDEN) + "/" + name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace shaper
