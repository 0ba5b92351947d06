#include "shaper/live/confinement.h"

#include <cap-ng.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <system_error>
#include <vector>

#include "shaper/live/system_call.h"

namespace shaper {
namespace {

/// What a worker goes on doing. Opening files and sockets is below.
constexpr std::array kAllowed{
    // packets, clients, the supervisor
    SCMP_SYS(recvmmsg), SCMP_SYS(recvmsg), SCMP_SYS(recvfrom), SCMP_SYS(sendto), SCMP_SYS(sendmsg), SCMP_SYS(sendmmsg),
    SCMP_SYS(accept4), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt), SCMP_SYS(getsockname), SCMP_SYS(bind),
    SCMP_SYS(connect), SCMP_SYS(shutdown),
    // waiting
    SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl), SCMP_SYS(poll), SCMP_SYS(ppoll),
    SCMP_SYS(timerfd_create), SCMP_SYS(timerfd_settime), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep), SCMP_SYS(restart_syscall), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    // files that are open, and looking for those that may be
    SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pread64), SCMP_SYS(lseek),
    SCMP_SYS(close), SCMP_SYS(fcntl), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(access),
    SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64),
    SCMP_SYS(ioctl),
    // memory and threads
    SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(mprotect), SCMP_SYS(madvise),
    SCMP_SYS(futex), SCMP_SYS(sched_yield), SCMP_SYS(membarrier), SCMP_SYS(rseq), SCMP_SYS(set_robust_list),
    SCMP_SYS(getrandom), SCMP_SYS(sysinfo), SCMP_SYS(uname),
    // realtime and its guard
    SCMP_SYS(sched_setscheduler), SCMP_SYS(sched_getscheduler), SCMP_SYS(prlimit64), SCMP_SYS(getrlimit),
    SCMP_SYS(setrlimit), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn),
    // who we are, and the end
    SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
    SCMP_SYS(tgkill), SCMP_SYS(exit), SCMP_SYS(exit_group)};

void check(int result, const char* call) {
  if (result < 0) throw std::system_error(-result, std::system_category(), call);
}

}  // namespace

/// Names are looked up while a policy is read, so files may be opened, but not to be written; sockets of the machine
/// itself only.
void filter_system_calls(Confined who) {
  const std::unique_ptr<void, void (*)(void*)> filter(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release);
  if (!filter) throw std::system_error(ENOMEM, std::system_category(), "seccomp_init");
  const auto allow = [&](int call, auto... conditions) {
    check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...),
          "seccomp_rule_add");
  };
  const auto only_to_read = [](unsigned argument) {
    return scmp_arg_cmp{argument, SCMP_CMP_MASKED_EQ, O_ACCMODE | O_CREAT, O_RDONLY};
  };
  const auto of_family = [](int family) { return scmp_arg_cmp{0, SCMP_CMP_EQ, static_cast<scmp_datum_t>(family), 0}; };
  for (const int call : kAllowed) allow(call);
  allow(SCMP_SYS(open), only_to_read(1));
  allow(SCMP_SYS(openat), only_to_read(2));
  allow(SCMP_SYS(socket), of_family(AF_UNIX));
  allow(SCMP_SYS(socket), of_family(AF_NETLINK));
  if (who == Confined::redis) {
    allow(SCMP_SYS(socket), of_family(AF_INET));
    allow(SCMP_SYS(socket), of_family(AF_INET6));
  }
  check(seccomp_attr_set(filter.get(), SCMP_FLTATR_CTL_TSYNC, 1), "seccomp_attr_set");
  check(seccomp_load(filter.get()), "seccomp_load");
}

namespace {

/// In a user namespace there is often nobody else to become.
bool is_only_user() {
  std::ifstream map{"/proc/self/uid_map"};
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  return !(map >> inside >> outside >> count) || inside > kNobody || count <= kNobody;
}

std::vector<unsigned> needed(Confined who) {
  switch (who) {
    case Confined::worker:
      return {CAP_NET_ADMIN, CAP_SYS_NICE};
    case Confined::redis:
      return {CAP_NET_RAW};  // for the mark of its connections
    case Confined::owners:
      return {CAP_SYS_PTRACE, CAP_DAC_OVERRIDE};
    case Confined::http:
      break;
  }
  return {};
}

void drop_capabilities(Confined who, const std::optional<Account>& account) {
  if (capng_get_caps_process() != 0) throw std::system_error(errno, std::system_category(), "capng_get_caps_process");
  const auto has = [](unsigned capability) { return capng_have_capability(CAPNG_PERMITTED, capability) != 0; };
  const bool bounded = has(CAP_SETPCAP);
  const bool other_user = account && has(CAP_SETUID) && has(CAP_SETGID) && !is_only_user();
  if (other_user) require(::setgroups(account->further.size(), account->further.data()), "setgroups");
  std::vector<unsigned> kept = needed(who);
  std::erase_if(kept, [&](unsigned capability) { return !has(capability); });
  capng_clear(bounded ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS);
  const auto type = static_cast<capng_type_t>(CAPNG_EFFECTIVE | CAPNG_PERMITTED);
  for (const unsigned capability : kept) capng_update(CAPNG_ADD, type, capability);
  const int result = other_user ? capng_change_id(static_cast<int>(account->user), static_cast<int>(account->group),
                                                  CAPNG_CLEAR_BOUNDING)
                                : capng_apply(bounded ? CAPNG_SELECT_BOTH : CAPNG_SELECT_CAPS);
  if (result != 0) throw std::system_error(EPERM, std::system_category(), "giving up capabilities");
}

}  // namespace

void drop_privileges(Confined who, const std::optional<Account>& account) {
  const rlimit none{0, 0};
  require(::setrlimit(RLIMIT_CORE, &none), "setrlimit(RLIMIT_CORE)");
  require(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)");
  drop_capabilities(who, account);
  require(::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl(PR_SET_DUMPABLE)");
}

}  // namespace shaper
