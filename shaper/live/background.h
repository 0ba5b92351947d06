// A thread for work that takes longer than packets may wait: reading a large policy, writing a long report. What is
// given to it shares nothing with the event loop; the loop wakes up when it is done and asks the future. Work is done
// in the order in which it was given. The thread takes no signals, and is a normal task where the loop is real-time
// (live/realtime.h).
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "shaper/live/event_loop.h"

namespace shaper {

class Background {
 public:
  explicit Background(EventLoop& loop);
  /// Waits for what is being done; what was not begun is not done.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// The future has what `work` returns or throws.
  template <typename Work>
  [[nodiscard]] auto run(Work work) {
    using Task = std::packaged_task<std::invoke_result_t<Work>()>;
    const auto task = std::make_shared<Task>(std::move(work));  // std::function copies what it holds
    put([task] { (*task)(); });
    return task->get_future();
  }

 private:
  void put(std::function<void()> work);
  void do_work();

  EventLoop& loop_;
  Fd done_;  // eventfd
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopped_ = false;
  std::thread thread_;  // the last member: it uses the others
};

/// Whether the work is done, without waiting.
template <typename Result>
[[nodiscard]] bool is_ready(const std::future<Result>& future) {
  return future.wait_for(std::chrono::seconds{0}) == std::future_status::ready;
}

}  // namespace shaper
