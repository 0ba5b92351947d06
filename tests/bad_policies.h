// Bad policies, each with the exact line that a user sees.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shaper/model/config.h"

namespace shaper {

struct BadPolicy {
  std::string sentence;
  std::string text;
  std::string error;  ///< "line:column: message"
};

inline std::string error_of(const std::string& text) {
  const NameLookup names{[](const std::string& name) -> std::optional<std::uint32_t> {
                           if (name == "backup") return 34;
                           return std::nullopt;
                         },
                         {}};
  const auto policy = parse_policy(text, "policy.toml", names);
  return policy ? "accepted" : policy.error().text();
}

inline void expect_errors(const std::vector<BadPolicy>& table, const std::string& before) {
  for (const BadPolicy& bad : table) {
    EXPECT_EQ(error_of(before + bad.text), "policy.toml:" + bad.error) << bad.sentence << "\n" << before << bad.text;
  }
}

inline const std::string kVersion = "version = 1\n";
inline const std::string kLink = kVersion + "[[link]]\nname = \"up\"\ninterface = \"eth0\"\n";
inline const std::string kClass = kLink + "[[class]]\nname = \"web\"\nlink = \"up\"\n";

}  // namespace shaper
