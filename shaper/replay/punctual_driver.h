// Drives the core as a machine would that is never late.
//
// Time is that of the arrivals. Between two of them release() is called at each next_departure(), exactly. What the
// core sends on a detour is cut as the kernel cuts it and comes back at once, behind the link's split queue.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shaper/core/shaper.h"
#include "shaper/model/event_log.h"

namespace shaper {

class ReportCollector;

/// Who is told what the driver does after the core's construction; null: nobody.
struct Listeners {
  EventLog* log = nullptr;  ///< begun by the caller
  ReportCollector* report = nullptr;
};

class PunctualDriver {
 public:
  PunctualDriver(const Policy& policy, std::uint32_t mtu, Instant start, const Listeners& told);

  /// A packet arrives at `at`, or now if that is past. Its id is given to it here.
  void arrive(Packet packet, Instant at);

  /// Lets time pass until nothing waits any more.
  void drain();

  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] const Shaper& shaper() const { return shaper_; }

 private:
  void run_until(Instant end);
  void release();
  void feed(const Packet& packet);
  void cut(const Packet& packet);
  void tell_outcomes();

  Shaper shaper_;
  std::uint32_t mtu_;
  Instant now_;
  Listeners told_;
  std::uint32_t next_number_ = 1;
  int idle_releases_ = 0;
  Verdicts verdicts_;
  std::vector<Packet> segments_;  ///< on their way back from a detour
};

}  // namespace shaper
