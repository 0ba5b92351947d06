#include "shaper/live/owner_helper.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "shaper/live/clock.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// So that no message comes near the longest one, whatever the names are.
constexpr std::size_t kAnswersInMessage = 256;

}  // namespace

OwnerHelper::OwnerHelper(EventLoop& loop, Fd channel, std::vector<std::string> lacks)
    : loop_(loop),
      lacks_(std::move(lacks)),
      supervisor_(
          loop, std::move(channel), [this](const Request& message) { on_message(message); }, [this] { loop_.stop(); }),
      timer_(loop, [] {}) {  // on_idle() follows
  loop_.on_idle([this] { return work(); });
}

void OwnerHelper::on_message(const Request& message) {
  if (message.verb == "own") {
    finder_.ask(parse_owner_asks(message.body));
  } else if (message.verb == "settings") {
    follow(message.body);
  } else if (message.verb == "memory") {
    memory_ = message.body;
    finder_.trees().take_up(memory_);
  }
}

void OwnerHelper::follow(std::string_view settings) {
  std::vector<std::uint32_t> numbers;
  while (!settings.empty()) {
    std::string_view line = take_line(settings);
    if (take_word(line) != "pid") continue;
    if (const auto number = parse_number<std::uint32_t>(line)) numbers.push_back(*number);
  }
  finder_.trees().follow(numbers);
  if (const auto lacks = std::exchange(lacks_, std::nullopt)) {
    supervisor_.send("lacks", fmt::format("{}", fmt::join(*lacks, "\n")));
  }
  tell_about_trees();
}

bool OwnerHelper::work() {
  tell(finder_.work());
  ProcessTrees& trees = finder_.trees();
  if (!trees.empty() && trees.next_look() <= monotonic_now()) {
    trees.look();
    tell_about_trees();
  }
  std::optional<Instant> next = finder_.next();
  if (!trees.empty()) next = next ? std::min(*next, trees.next_look()) : trees.next_look();
  timer_.set(next);
  return false;
}

void OwnerHelper::tell_about_trees() {
  const ProcessTrees& trees = finder_.trees();
  if (std::string text = trees.text(); text != memory_) {
    memory_ = std::move(text);
    supervisor_.send("memory", memory_);
  }
  if (const auto gone = finder_.trees().take_gone(); !gone.empty()) {
    supervisor_.send("gone", fmt::format("{}", fmt::join(gone, " ")));
  }
}

void OwnerHelper::tell(std::span<const OwnerAnswer> answers) {
  while (!answers.empty()) {
    const std::size_t count = std::min(answers.size(), kAnswersInMessage);
    supervisor_.send("owned", owner_answers_text(answers.first(count)));
    answers = answers.subspan(count);
  }
}

}  // namespace shaper
