#include "shaper/live/lease_messages.h"

#include <fmt/format.h>

#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// Reads words one after the other; once one is wrong all further ones are zero.
class Words {
 public:
  explicit Words(std::string_view line) : rest_(line) {}

  template <typename Number>
  void operator()(Number& number) {
    const auto value = parse_number<Number>(take_word(rest_));
    good_ &= value.has_value();
    number = value.value_or(Number{});
  }
  void operator()(bool& flag) {
    unsigned number = 0;
    (*this)(number);
    flag = number != 0;
  }
  void operator()(Nanos& time) {
    std::int64_t number = 0;
    (*this)(number);
    time = Nanos{number};
  }
  void operator()(ByteCount& bytes) { (*this)(bytes.value); }
  void operator()(DataRate& rate) { (*this)(rate.bits_per_second); }
  void operator()(std::string& word) {
    word = take_word(rest_);
    good_ &= !word.empty();
  }

  [[nodiscard]] bool good() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

std::string line_of(const LeaseAsk& ask) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {:d} {:d} {:d} {:d} {:d}\n", ask.bucket, ask.config,
                     ask.rate.bits_per_second, ask.burst.value, ask.interval.count(), ask.lease.count(), ask.sequence,
                     ask.want.bits_per_second, ask.need.value, ask.give_back.value, ask.debt.value,
                     ask.local_rate.bits_per_second, ask.in_fallback, ask.leaving, ask.reserve, ask.observe, ask.tell);
}

std::optional<LeaseAsk> parse_ask(std::string_view line) {
  LeaseAsk ask;
  Words words(line);
  words(ask.bucket), words(ask.config), words(ask.rate), words(ask.burst), words(ask.interval), words(ask.lease);
  words(ask.sequence), words(ask.want), words(ask.need), words(ask.give_back);
  words(ask.debt), words(ask.local_rate);
  words(ask.in_fallback), words(ask.leaving), words(ask.reserve), words(ask.observe), words(ask.tell);
  return words.good() ? std::optional(ask) : std::nullopt;
}

constexpr std::string_view kAnswered = "answered";
constexpr std::string_view kFailed = "failed";

std::string line_of(const LeaseOutcome& outcome) {
  if (!outcome.answer) return fmt::format("{} {} {} {}\n", kFailed, outcome.bucket, outcome.sequence, outcome.reason);
  const LeaseAnswer& answer = *outcome.answer;
  return fmt::format("{} {} {} {} {} {} {} {:d} {} {} {} {} {} {}\n", kAnswered, outcome.bucket, outcome.sequence,
                     static_cast<unsigned>(answer.status), answer.grant.value, answer.tokens,
                     answer.share.bits_per_second, answer.contended, answer.members, answer.generation, answer.config,
                     answer.rate.bits_per_second, answer.burst.value, answer.redis_time_us);
}

std::optional<LeaseOutcome> parse_outcome(std::string_view line) {
  LeaseOutcome outcome;
  const std::string_view kind = take_word(line);
  Words words(line);
  words(outcome.bucket), words(outcome.sequence);
  if (kind == kFailed) {
    words(outcome.reason);
  } else if (kind == kAnswered) {
    LeaseAnswer& answer = outcome.answer.emplace();
    unsigned status = 0;
    words(status), words(answer.grant), words(answer.tokens), words(answer.share), words(answer.contended);
    words(answer.members), words(answer.generation), words(answer.config), words(answer.rate), words(answer.burst);
    words(answer.redis_time_us);
    if (status > static_cast<unsigned>(LeaseAnswer::kLastStatus)) return std::nullopt;
    answer.status = static_cast<LeaseAnswer::Status>(status);
  } else {
    return std::nullopt;
  }
  return words.good() ? std::optional(outcome) : std::nullopt;
}

}  // namespace

std::string LeaseAsks::text() const {
  std::string text = fmt::format("{}\n", timeout.count());
  for (const LeaseAsk& ask : asks) text += line_of(ask);
  return text;
}

std::optional<LeaseAsks> LeaseAsks::parse(std::string_view text) {
  LeaseAsks asks;
  Words first(take_line(text));
  first(asks.timeout);
  if (!first.good()) return std::nullopt;
  while (!text.empty()) {
    const auto ask = parse_ask(take_line(text));
    if (!ask) return std::nullopt;
    asks.asks.push_back(*ask);
  }
  return asks;
}

std::string SpentElsewhere::line() const {
  return fmt::format("{} {} {}\n", bucket, bytes.value, redis_time_us);
}

std::vector<SpentElsewhere> parse_spent_elsewhere(std::string_view text) {
  std::vector<SpentElsewhere> all;
  while (!text.empty()) {
    SpentElsewhere spent;
    Words words(take_line(text));
    words(spent.bucket), words(spent.bytes), words(spent.redis_time_us);
    if (words.good()) all.push_back(std::move(spent));
  }
  return all;
}

std::optional<SpentElsewhere> spent_elsewhere(std::string_view published, std::string_view self) {
  if (take_word(published) == self) return std::nullopt;
  const std::vector<SpentElsewhere> all = parse_spent_elsewhere(published);
  const bool good = all.size() == 1 && all.front().bytes <= kDeepestBucket;  // no ask owes more than the script counts
  return good ? std::optional(all.front()) : std::nullopt;
}

std::string lease_outcomes_text(const std::vector<LeaseOutcome>& outcomes) {
  std::string text;
  for (const LeaseOutcome& outcome : outcomes) text += line_of(outcome);
  return text;
}

std::vector<LeaseOutcome> parse_lease_outcomes(std::string_view text) {
  std::vector<LeaseOutcome> outcomes;
  while (!text.empty()) {
    if (const auto outcome = parse_outcome(take_line(text))) outcomes.push_back(*outcome);
  }
  return outcomes;
}

}  // namespace shaper
