// What the daemon answers to one question, for all who ask at about the same time: a hundred readers are one ask twice
// a second. Asking happens in a thread of its own, so nobody else waits for a daemon that does not answer.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace shaper {

struct DaemonAnswer {
  enum class Kind : std::uint8_t {
    ok,
    refused,    ///< the daemon will not
    no_daemon,  ///< none runs here
    failed,     ///< it cannot be asked, or does not answer
  };
  Kind kind = Kind::failed;
  std::string text;  ///< its answer, or a sentence why there is none
};

class SharedAnswer {
 public:
  using Ask = std::function<DaemonAnswer()>;
  /// The number is another one for another answer of the daemon.
  using Take = std::function<void(const DaemonAnswer& answer, std::uint64_t number)>;

  /// An answer is good for so long; for four times as long as it took, if that is more.
  SharedAnswer(Ask ask, std::chrono::milliseconds good_for);
  /// Gives everybody who has asked an answer first.
  ~SharedAnswer();
  SharedAnswer(const SharedAnswer&) = delete;
  SharedAnswer& operator=(const SharedAnswer&) = delete;

  /// Calls `take` once, soon, in this object's thread: work on the answer may take its time there.
  void get(Take take);

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void renew();

  Ask ask_;
  std::chrono::milliseconds good_for_;
  DaemonAnswer answer_;
  std::uint64_t number_ = 0;
  Clock::time_point good_until_;
  std::mutex mutex_;  // of what follows
  std::condition_variable wanted_;
  std::vector<Take> waiting_;
  bool ends_ = false;
  std::thread thread_;  // the last one: it uses all others
};

}  // namespace shaper
