#include "shaper/live/process_facts.h"

#include <fmt/format.h>

#include "shaper/live/folder.h"
#include "shaper/model/plain_text.h"

namespace shaper {

Fd open_process(std::uint32_t pid) {
  return open_folder(AT_FDCWD, fmt::format("/proc/{}", pid).c_str());
}

/// `PID (NAME) STATE PARENT GROUP SESSION …`, the start is the 22nd. The name may hold brackets and spaces.
std::optional<ProcessFacts> parse_process_stat(std::string_view text) {
  constexpr int kFromSessionToStart = 15;
  const std::size_t bracket = text.rfind(") ");
  if (bracket == std::string_view::npos) return std::nullopt;
  std::string_view rest = text.substr(bracket + 2);
  const auto pid = parse_number<std::uint32_t>(take_word(text));
  const std::string_view state = take_word(rest);
  const auto parent = parse_number<std::uint32_t>(take_word(rest));
  const auto group = parse_number<std::uint32_t>(take_word(rest));
  const auto session = parse_number<std::uint32_t>(take_word(rest));
  for (int i = 0; i < kFromSessionToStart; ++i) static_cast<void>(take_word(rest));
  const auto started = parse_number<std::uint64_t>(take_word(rest));
  if (!pid || !parent || !started) return std::nullopt;
  return ProcessFacts{
      {*started, *pid}, *parent, group.value_or(0), session.value_or(0), state == "Z" || state == "X", ""};
}

std::optional<ProcessFacts> process_standing(const Fd& folder) {
  return folder ? parse_process_stat(read_text(folder.get(), "stat")) : std::nullopt;
}

std::optional<ProcessFacts> process_facts(const Fd& folder) {
  auto facts = process_standing(folder);
  if (!facts) return facts;
  facts->name = read_text(folder.get(), "comm");
  if (facts->name.empty()) return std::nullopt;  // not even the line feed behind it
  facts->name.pop_back();
  return facts;
}

void for_each_process(const std::function<void(std::uint32_t)>& visit) {
  for_each_entry(open_folder(AT_FDCWD, "/proc"), [&](const dirent& entry) {
    if (const auto pid = parse_number<std::uint32_t>(entry.d_name)) visit(*pid);
    return true;
  });
}

}  // namespace shaper
