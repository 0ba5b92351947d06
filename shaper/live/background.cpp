#include "shaper/live/background.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>

#include "shaper/live/system_call.h"

namespace shaper {

Background::Background(EventLoop& loop)
    : loop_(loop), done_(require(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  loop_.add(done_.get(), EPOLLIN, [this](std::uint32_t) {
    eventfd_t count = 0;
    ::eventfd_read(done_.get(), &count);  // being awake is all that was wanted
  });
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);  // the thread inherits it
  thread_ = std::thread([this] { do_work(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  thread_.join();
  loop_.remove(done_.get());
}

void Background::put(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
  }
  changed_.notify_one();
}

void Background::do_work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    if (stopped_) return;
    auto work = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    work();
    work = nullptr;  // what it held may be large
    ::eventfd_write(done_.get(), 1);
    lock.lock();
  }
}

}  // namespace shaper
