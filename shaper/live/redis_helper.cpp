#include "shaper/live/redis_helper.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "shaper/cluster/grants_script.h"
#include "shaper/cluster/lease_script.h"
#include "shaper/live/clock.h"
#include "shaper/model/plain_text.h"

namespace shaper {
namespace {

/// For commands that nothing waits for.
constexpr std::chrono::seconds kPatience{1};

/// Who has told nothing for so long need not hear either.
constexpr std::chrono::seconds kListensFor{3};

/// What others spend is passed on together.
constexpr std::chrono::milliseconds kTogether{2};

/// The channel of the script's `tell`.
constexpr const char* kSpentChannel = "dl:{0}:spent";

std::uint64_t microseconds_since_1970() {
  const auto time = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(time / std::chrono::microseconds{1});
}

/// The first word of an error; nothing: it is none.
std::optional<std::string> error_of(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_ERROR) return std::nullopt;
  std::string_view text(reply->str, reply->len);
  return std::string(take_word(text));
}

std::optional<std::vector<std::int64_t>> integers_of(const redisReply* reply) {
  if (reply->type != REDIS_REPLY_ARRAY) return std::nullopt;
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < reply->elements; ++i) {
    if (reply->element[i]->type != REDIS_REPLY_INTEGER) return std::nullopt;
    integers.push_back(reply->element[i]->integer);
  }
  return integers;
}

}  // namespace

RedisHelper::RedisHelper(EventLoop& loop, Fd channel)
    : loop_(loop),
      supervisor_(
          loop, std::move(channel), [this](const Request& message) { on_message(message); }, [this] { loop_.stop(); }),
      still_there_(loop, [this] { look_after_listener(); }),
      pass_on_(loop, [this] { supervisor_.send("spent", std::exchange(spent_, {})); }) {
  host_.incarnation = microseconds_since_1970();
}

void RedisHelper::on_message(const Request& message) {
  if (message.verb == "connect") {
    connect(message.body);
  } else if (message.verb == "ask" && redis_) {
    if (auto asks = LeaseAsks::parse(message.body)) ask(std::move(*asks), false);
  }
}

/// Four lines: this host's name, the server's address, user and password.
void RedisHelper::connect(std::string_view settings) {
  host_.id = take_line(settings);
  address_ = take_line(settings);
  listener_.reset();
  const std::string_view user = take_line(settings);
  const std::string_view password = take_line(settings);
  if (!password.empty()) login_ = {"AUTH", std::string(user.empty() ? "default" : user), std::string(password)};
  redis_ = std::make_unique<RedisConnection>(loop_, address_, [this] { greet(); });
}

/// A server that lets nobody in answers to small commands only. One that has started anew, or was promoted, does not
/// know the script.
void RedisHelper::greet() {
  greeted_ = monotonic_now();
  if (!login_.empty()) redis_->call(login_, kPatience, [](const redisReply*, std::string_view) {});
  redis_->call(std::vector<std::string>{"SCRIPT", "EXISTS", std::string(kGrantsScriptSha1)}, kPatience,
               [this](const redisReply* reply, std::string_view) {
                 if (reply == nullptr) return;
                 barred_ = error_of(reply).value_or("");
                 if (!barred_.empty()) return;
                 redis_->call(std::vector<std::string>{"SCRIPT", "LOAD", std::string(kGrantsScript)}, kPatience,
                              [](const redisReply*, std::string_view) {});
                 supervisor_.send("connected");
               });
}

void RedisHelper::ask(LeaseAsks asks, bool whole_script) {
  if (!barred_.empty()) {
    if (redis_->up() && monotonic_now() - greeted_ > kPatience) greet();
    return tell(asks, nullptr, barred_);
  }
  const bool tells = std::any_of(asks.asks.begin(), asks.asks.end(), [](const LeaseAsk& ask) { return ask.tell; });
  if (tells) listen();
  const LeaseCall call = lease_call(host_, asks.asks);
  std::vector<std::string> words{whole_script ? "EVAL" : "EVALSHA",
                                 std::string(whole_script ? kGrantsScript : kGrantsScriptSha1),
                                 std::to_string(call.keys.size())};
  words.insert(words.end(), call.keys.begin(), call.keys.end());
  words.insert(words.end(), call.arguments.begin(), call.arguments.end());
  const Nanos timeout = asks.timeout;
  redis_->call(words, timeout,
               [this, asks = std::move(asks), whole_script](const redisReply* reply, std::string_view failure) {
                 if (reply != nullptr && !whole_script && error_of(reply) == "NOSCRIPT") {
                   supervisor_.send("no-script");
                   return ask(asks, true);
                 }
                 tell(asks, reply, failure);
               });
}

void RedisHelper::listen() {
  told_ = monotonic_now();
  if (listener_) return;
  listener_ = std::make_unique<RedisConnection>(loop_, address_, [this] { subscribe(); });
  listener_->listen([this](std::string_view text) { on_published(text); });
  still_there_.repeat(kPatience);
}

void RedisHelper::subscribe() {
  if (!login_.empty()) ask_listener(login_);
  ask_listener({"SUBSCRIBE", kSpentChannel});
}

/// A dead path is noticed by a question now and then: on this connection nothing else is said.
void RedisHelper::look_after_listener() {
  if (monotonic_now() - told_ <= kListensFor) return ask_listener({"PING"});
  listener_.reset();
  still_there_.set(std::nullopt);
}

void RedisHelper::ask_listener(const std::vector<std::string>& words) {
  if (listener_) listener_->call(words, kPatience, [](const redisReply*, std::string_view) {});
}

void RedisHelper::on_published(std::string_view text) {
  const auto spent = spent_elsewhere(text, host_.id);
  if (!spent) return;
  if (spent_.empty()) pass_on_.set(monotonic_now() + kTogether);
  spent_ += spent->line();
}

void RedisHelper::tell(const LeaseAsks& asks, const redisReply* reply, std::string_view failure) {
  std::vector<LeaseOutcome> outcomes;
  std::string reason(failure);
  if (reply != nullptr) {
    reason = error_of(reply).value_or("odd");
    if (const auto integers = integers_of(reply)) {
      if (const auto answers = read_lease_reply(*integers, asks.asks.size())) {
        for (std::size_t i = 0; i < answers->size(); ++i) {
          outcomes.push_back({asks.asks[i].bucket, asks.asks[i].sequence, (*answers)[i], ""});
        }
      }
    }
  }
  if (outcomes.empty()) {
    for (const LeaseAsk& each : asks.asks) outcomes.push_back({each.bucket, each.sequence, {}, reason});
  }
  supervisor_.send("answer", lease_outcomes_text(outcomes));
}

}  // namespace shaper
