// How much of the machine's CPUs everything else takes: one thread on each CPU spins under SCHED_IDLE, and what it
// loses was used by others. usage: spinners SECONDS; prints the time lost on all CPUs together, in percent of one CPU.
//
// Lost is the wall-clock time between two readings of the clock that are further apart than a reading takes. So work in
// interrupts counts too, which the kernel charges to whom it interrupted; the spinner's own CPU time would hide it.
// What a hypervisor takes away counts as well: subtract what an idle machine loses.
//
// SCHED_IDLE gives way to everybody only inside its own scheduling group: kernel.sched_autogroup_enabled must be 0
// when the programs that are measured are started, or a daemon with a session of its own waits for the spinner's slice.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

// A reading takes 20 to 60 ns, the shortest interrupt more than a microsecond.
constexpr std::chrono::nanoseconds kLongestReading{500};

std::atomic<bool> refused{false};

/// Spins on one CPU from `begin` to `end`; the time that it did not run.
Clock::duration time_lost(int cpu, Clock::time_point begin, Clock::time_point end) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(static_cast<std::size_t>(cpu), &only);
  const sched_param none{};
  // 0 is the calling thread.
  if (sched_setaffinity(0, sizeof only, &only) != 0 || sched_setscheduler(0, SCHED_IDLE, &none) != 0) refused = true;
  std::this_thread::sleep_until(begin);
  Clock::duration lost{};
  for (Clock::time_point before = begin; before < end;) {
    const Clock::time_point now = std::min(Clock::now(), end);
    if (now - before > kLongestReading) lost += now - before;
    before = now;
  }
  return lost;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? std::strtod(argv[1], nullptr) : 0;
  if (seconds <= 0) {
    std::fputs("usage: spinners SECONDS\n", stderr);
    return 2;
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
    std::perror("spinners: sched_getaffinity");
    return 1;
  }
  const auto length = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  const Clock::time_point begin = Clock::now() + std::chrono::milliseconds{100};  // all threads stand ready by then
  std::vector<Clock::duration> lost(CPU_SETSIZE);
  {
    std::vector<std::jthread> threads;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      const auto at = static_cast<std::size_t>(cpu);
      if (!CPU_ISSET(at, &cpus)) continue;
      threads.emplace_back([&lost, at, cpu, begin, length] { lost[at] = time_lost(cpu, begin, begin + length); });
    }
  }
  if (refused) {
    std::fputs("spinners: a thread could not be pinned under SCHED_IDLE\n", stderr);
    return 1;
  }
  Clock::duration total{};
  for (const Clock::duration each : lost) total += each;
  std::printf("%.2f\n", 100 * std::chrono::duration<double>(total).count() / seconds);
}
