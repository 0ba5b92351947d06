#include "shaper/live/owner_messages.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "shaper/model/line_reader.h"
#include "shaper/model/owner_text.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

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

std::optional<OwnerAnswer> parse_answer(std::string_view text) {
  LineReader line(text);
  const auto id = line.number<std::uint64_t>("the number of an ask");
  Owner owner = read_owner(line);
  if (!line.error().empty()) return std::nullopt;
  return OwnerAnswer{id, std::move(owner)};
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
  for (const OwnerAnswer& answer : answers) text += fmt::format("{}{}\n", answer.id, owner_words(answer.owner));
  return text;
}

std::vector<OwnerAnswer> parse_owner_answers(std::string_view text) {
  std::vector<OwnerAnswer> answers;
  while (!text.empty()) {
    if (auto answer = parse_answer(take_line(text))) answers.push_back(std::move(*answer));
  }
  return answers;
}

}  // namespace shaper
