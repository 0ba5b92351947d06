// A real redis-server of the test's own, on a unix socket in a temporary folder, and a client of it.
#pragma once

#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace shaper::test {

class RedisServer {
 public:
  /// `environment` is added to the server's: NAME=VALUE.
  explicit RedisServer(std::vector<std::string> environment = {}) : environment_(std::move(environment)) {
    std::string name = std::filesystem::temp_directory_path() / "shaper-redis-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::system_error(errno, std::generic_category(), name);
    folder_ = name;
    start();
  }
  ~RedisServer() {
    end();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;

  [[nodiscard]] std::string socket() const { return folder_ / "redis.sock"; }

  /// As after a crash: nothing is left of what it knew.
  void restart() {
    end();
    start();
  }

  void start() {
    pid_ = fork();
    if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (std::string& entry : environment_) putenv(entry.data());
      execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", socket().c_str(), "--save", "",
             "--appendonly", "no", "--maxmemory-policy", "noeviction", "--dir", folder_.c_str(), "--logfile",
             (folder_ / "log").c_str(), nullptr);
      _exit(127);
    }
    for (int tries = 0; tries < 2'000; ++tries) {
      if (answers()) return;
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) {
        pid_ = -1;
        throw std::runtime_error("redis-server did not start: install it with ./setup");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    throw std::runtime_error("redis-server does not answer on " + socket());
  }

  /// At once, as by a crash.
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
    std::error_code ignored;
    std::filesystem::remove(socket(), ignored);
  }

  void stand_still() const { kill(pid_, SIGSTOP); }
  void go_on() const { kill(pid_, SIGCONT); }

 private:
  [[nodiscard]] bool answers() const {
    redisContext* connection = redisConnectUnix(socket().c_str());
    const bool connected = connection != nullptr && connection->err == 0;
    redisFree(connection);
    return connected;
  }

  std::vector<std::string> environment_;
  std::filesystem::path folder_;
  pid_t pid_ = -1;
};

struct RedisReply {
  std::string text;  ///< a string or a status
  std::int64_t number = 0;
  std::vector<std::int64_t> numbers;  ///< of a list
  std::vector<std::string> texts;     ///< of a list
  std::string error;
};

class RedisClient {
 public:
  explicit RedisClient(const std::string& socket) : connection_(redisConnectUnix(socket.c_str())) {
    if (!connection_ || connection_->err != 0) throw std::runtime_error("no connection to " + socket);
  }

  RedisReply operator()(const std::vector<std::string>& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> lengths;
    for (const std::string& word : words) {
      texts.push_back(word.data());
      lengths.push_back(word.size());
    }
    const auto count = static_cast<int>(words.size());
    const std::unique_ptr<redisReply, decltype(&freeReplyObject)> reply(
        static_cast<redisReply*>(redisCommandArgv(connection_.get(), count, texts.data(), lengths.data())),
        &freeReplyObject);
    if (!reply) throw std::runtime_error("redis-server is gone");
    return read(*reply);
  }

 private:
  struct Free {
    void operator()(redisContext* connection) const { redisFree(connection); }
  };

  static RedisReply read(const redisReply& reply) {
    RedisReply found;
    if (reply.type == REDIS_REPLY_ERROR) {
      found.error.assign(reply.str, reply.len);
    } else if (reply.type == REDIS_REPLY_INTEGER) {
      found.number = reply.integer;
    } else if (reply.str != nullptr) {
      found.text.assign(reply.str, reply.len);
    }
    for (std::size_t i = 0; i < reply.elements; ++i) {
      const redisReply& element = *reply.element[i];
      if (element.type == REDIS_REPLY_INTEGER) found.numbers.push_back(element.integer);
      if (element.str != nullptr) found.texts.emplace_back(element.str, element.len);
    }
    return found;
  }

  std::unique_ptr<redisContext, Free> connection_;
};

}  // namespace shaper::test
