#include "shaper/web/shared_answer.h"

#include <algorithm>
#include <utility>

namespace shaper {

SharedAnswer::SharedAnswer(Ask ask, std::chrono::milliseconds good_for)
    : ask_(std::move(ask)), good_for_(good_for), thread_([this] { run(); }) {}

SharedAnswer::~SharedAnswer() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_one();
  thread_.join();
}

void SharedAnswer::get(Take take) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(take));
  }
  wanted_.notify_one();
}

void SharedAnswer::run() {
  for (;;) {
    std::unique_lock lock(mutex_);
    wanted_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::vector<Take> taken = std::exchange(waiting_, {});
    lock.unlock();
    renew();
    for (const Take& take : taken) take(answer_, number_);
  }
}

void SharedAnswer::renew() {
  const auto begin = Clock::now();
  if (number_ > 0 && begin < good_until_) return;
  answer_ = ask_();
  ++number_;
  const auto end = Clock::now();
  good_until_ = end + std::max<Clock::duration>(good_for_, 4 * (end - begin));
}

}  // namespace shaper
