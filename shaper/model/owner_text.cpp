#include "shaper/model/owner_text.h"

#include <fmt/format.h>

#include "shaper/model/event_words.h"

namespace shaper {
namespace {

/// So much of a container's id is enough for people.
constexpr std::size_t kShortId = 12;

std::string encode(std::string_view text) {
  std::string word;
  for (const char c : text) {
    const bool plain = c > ' ' && c <= '~' && c != '%';
    word += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return word;
}

std::string decode(LineReader& line, std::string_view word) {
  std::string text;
  while (!word.empty()) {
    if (word.front() != '%') {
      text += word.front();
      word.remove_prefix(1);
      continue;
    }
    const auto code =
        word.size() < 3 ? std::nullopt : parse_number<std::uint8_t>("0x" + std::string(word.substr(1, 2)));
    if (!code) line.fail("two hexadecimal digits behind each `%`");
    text += static_cast<char>(code.value_or(0));
    word.remove_prefix(std::min<std::size_t>(word.size(), 3));
  }
  return text;
}

void word_of(LineReader& line, Owner& owner) {
  const auto [key, value] = key_and_value(line.word());
  const std::string number = "a number that tells of an owner";
  if (key == "user") {
    owner.user = line.number_in<std::uint32_t>(value, number);
  } else if (key == "cgroup") {
    owner.cgroup = decode(line, value);
  } else if (key == "process") {
    owner.process = decode(line, value);
  } else if (key == "pid") {
    owner.pid = line.number_in<std::uint32_t>(value, number);
  } else if (key == "started") {
    owner.started = line.number_in<std::uint64_t>(value, number);
  } else if (key == "of") {
    owner.lineage.push_back(line.number_in<std::uint32_t>(value, number));
  } else if (key == "container") {
    owner.container = decode(line, value);
  } else if (key == "name") {
    owner.container_name = decode(line, value);
  } else {
    line.fail("one of user=, cgroup=, process=, pid=, started=, of=, container=, name=");
  }
}

/// The last part of the path.
std::string_view leaf(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

std::string owner_words(const Owner& owner) {
  std::string words;
  const auto add = [&](std::string_view key, const auto& value) { words += fmt::format(" {}={}", key, value); };
  const auto add_name = [&](std::string_view key, const std::string& name) {
    if (!name.empty()) add(key, encode(name));
  };
  if (owner.user) add("user", *owner.user);
  add_name("cgroup", owner.cgroup);
  add_name("process", owner.process);
  if (owner.pid != 0) add("pid", owner.pid);
  if (owner.started != 0) add("started", owner.started);
  for (const std::uint32_t number : owner.lineage) add("of", number);
  add_name("container", owner.container);
  add_name("name", owner.container_name);
  return words;
}

Owner read_owner(LineReader& line) {
  Owner owner;
  while (!line.at_end() && line.error().empty()) word_of(line, owner);
  return owner;
}

std::string owner_name(const Owner& owner) {
  std::string place;
  if (!owner.container.empty()) {
    place = "container " + (owner.container_name.empty() ? owner.container.substr(0, kShortId) : owner.container_name);
  } else {
    place = leaf(owner.cgroup);
  }
  if (owner.process.empty()) return place;
  const std::string process = fmt::format("{}[{}]", owner.process, owner.pid);
  return place.empty() ? process : process + " in " + place;
}

}  // namespace shaper
