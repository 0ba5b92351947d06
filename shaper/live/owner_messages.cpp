#include "shaper/live/owner_messages.h"

#include <fmt/format.h>

#include <optional>

#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

constexpr std::string_view kNone = "-";

std::string text_of(Family family, const Address& address, std::uint16_t port) {
  return format_end_point({family, address, port});
}

std::optional<OwnerAsk> parse_ask(std::string_view line) {
  const auto id = parse_number<std::uint64_t>(take_word(line));
  const auto protocol = parse_number<std::uint8_t>(take_word(line));
  const auto local = parse_end_point(take_word(line));
  const auto remote = parse_end_point(line);
  if (!id || !protocol || !local || !remote || local->family != remote->family) return std::nullopt;
  return OwnerAsk{*id,
                  local->family,
                  *protocol,
                  local->address,
                  remote->address,
                  local->port.value_or(0),
                  remote->port.value_or(0)};
}

/// ID USER PID STARTED LINEAGE, the last one with commas.
std::string head_of(const OwnerAnswer& answer) {
  const Owner& owner = answer.owner;
  const std::string user = owner.user ? fmt::format("{}", *owner.user) : std::string(kNone);
  const std::string lineage = fmt::format("{}", fmt::join(owner.lineage, ","));
  return fmt::format("{} {} {} {} {}\n", answer.id, user, owner.pid, owner.started, lineage.empty() ? kNone : lineage);
}

std::optional<std::vector<std::uint32_t>> parse_lineage(std::string_view text) {
  std::vector<std::uint32_t> lineage;
  if (text == kNone) return lineage;
  while (true) {
    const std::size_t comma = text.find(',');
    const auto number = parse_number<std::uint32_t>(text.substr(0, comma));
    if (!number) return std::nullopt;
    lineage.push_back(*number);
    if (comma == std::string_view::npos) return lineage;
    text.remove_prefix(comma + 1);
  }
}

std::optional<OwnerAnswer> parse_head(std::string_view line) {
  const auto id = parse_number<std::uint64_t>(take_word(line));
  const std::string_view user_word = take_word(line);
  const auto user = parse_number<std::uint32_t>(user_word);
  const auto pid = parse_number<std::uint32_t>(take_word(line));
  const auto started = parse_number<std::uint64_t>(take_word(line));
  const auto lineage = parse_lineage(line);
  if (!id || !(user || user_word == kNone) || !pid || !started || !lineage) return std::nullopt;
  OwnerAnswer answer{*id, {}};
  answer.owner.user = user;
  answer.owner.pid = *pid;
  answer.owner.started = *started;
  answer.owner.lineage = *lineage;
  return answer;
}

}  // namespace

std::string owner_asks_text(std::span<const OwnerAsk> asks) {
  std::string text;
  for (const OwnerAsk& ask : asks) {
    text += fmt::format("{} {} {} {}\n", ask.id, ask.protocol, text_of(ask.family, ask.local, ask.local_port),
                        text_of(ask.family, ask.remote, ask.remote_port));
  }
  return text;
}

std::vector<OwnerAsk> parse_owner_asks(std::string_view text) {
  std::vector<OwnerAsk> asks;
  while (!text.empty()) {
    if (const auto ask = parse_ask(take_line(text))) asks.push_back(*ask);
  }
  return asks;
}

std::string owner_answers_text(std::span<const OwnerAnswer> answers) {
  std::string text;
  for (const OwnerAnswer& answer : answers) {
    text += head_of(answer);
    const Owner& owner = answer.owner;
    for (const std::string* name : {&owner.cgroup, &owner.process, &owner.container, &owner.container_name}) {
      text += quote_line(*name) + '\n';
    }
  }
  return text;
}

std::vector<OwnerAnswer> parse_owner_answers(std::string_view text) {
  std::vector<OwnerAnswer> answers;
  while (!text.empty()) {
    auto answer = parse_head(take_line(text));
    if (!answer) continue;
    Owner& owner = answer->owner;
    bool good = true;
    for (std::string* name : {&owner.cgroup, &owner.process, &owner.container, &owner.container_name}) {
      const auto word = unquote_line(take_line(text));
      good &= word.has_value();
      *name = word.value_or("");
    }
    if (good) answers.push_back(std::move(*answer));
  }
  return answers;
}

}  // namespace shaper
