// Owners by where a process stands: real cgroups made for it, and containers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "owned_sockets.h"
#include "shaper/live/engine_socket.h"
#include "shaper/live/folder.h"

namespace shaper {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

// --- Cgroups ---------------------------------------------------------------------------------------------------------

/// A cgroup of our own, gone with the object.
class Cgroup {
 public:
  explicit Cgroup(std::string path) : path_(std::move(path)), folder_(mount() + path_) {
    if (!std::filesystem::create_directory(folder_)) throw std::runtime_error(folder_ + " is there already");
  }
  ~Cgroup() { remove(); }
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  void take(pid_t process) const { std::ofstream(folder_ + "/cgroup.procs") << process << std::flush; }
  /// Its processes have ended, or are about to.
  void remove() {
    for (int i = 0; i < 1000 && ::rmdir(folder_.c_str()) != 0 && errno == EBUSY; ++i) ::usleep(1000);
  }

  static std::string mount() {
    return cgroup2_mount(read_text(AT_FDCWD, "/proc/self/mountinfo", 1 << 20)).value_or("");
  }

 private:
  std::string path_;
  std::string folder_;
};

class InCgroups : public testing::Test {
 protected:
  void SetUp() override {
    if (Cgroup::mount().empty() || ::access(Cgroup::mount().c_str(), W_OK) != 0)
      GTEST_SKIP() << "no right to make cgroups";
  }

  [[nodiscard]] static std::string name(const std::string& word) {
    return "/shaper-test-" + std::to_string(::getpid()) + "-" + word;
  }
  /// With a UDP socket made in that cgroup.
  [[nodiscard]] static std::uint16_t send_from(const Cgroup& cgroup) {
    cgroup.take(::getpid());
    return leave_open(bound(SOCK_DGRAM, "::"));
  }
};

TEST_F(InCgroups, TheCgroupIsWhereTheSocketWasMade) {
  const Cgroup outer(name("outer"));
  const Cgroup cgroup(outer.path() + "/backup.service");
  const Child child([&] { return send_from(cgroup); });
  OwnerFinder finder;
  const Owner owner = owner_of(finder, udp_flow(child.port()));
  EXPECT_EQ(owner.cgroup, cgroup.path());
  EXPECT_EQ(owner.pid, child.pid());
  EXPECT_EQ(owner.container, "");
}

TEST_F(InCgroups, ItsProcessesAreSearchedBeforeAllOthers) {
  const Cgroup cgroup(name("few"));
  const Child child([&] { return send_from(cgroup); });
  OwnerFinder finder;
  EXPECT_EQ(owner_of(finder, udp_flow(child.port())).pid, child.pid());
  EXPECT_EQ(finder.processes().searches(), 2U) << "lately found ones, and those of the cgroup";
}

TEST_F(InCgroups, OneThatIsMadeAnewIsFoundAndTheOldOneStaysKnown) {
  OwnerFinder finder;
  std::optional<Cgroup> cgroup(name("again"));
  const Child first([&] { return send_from(*cgroup); });
  EXPECT_EQ(owner_of(finder, udp_flow(first.port())).cgroup, cgroup->path());
  std::ofstream(Cgroup::mount() + "/cgroup.procs") << first.pid() << std::flush;  // its socket stays
  cgroup->remove();
  ASSERT_FALSE(std::filesystem::exists(Cgroup::mount() + name("again")));
  cgroup.emplace(name("again"));
  const Child second([&] { return send_from(*cgroup); });
  EXPECT_EQ(owner_of(finder, udp_flow(second.port())).cgroup, name("again"));
  EXPECT_EQ(owner_of(finder, udp_flow(first.port())).cgroup, name("again"));
  EXPECT_EQ(owner_of(finder, udp_flow(first.port())).pid, first.pid());
}

TEST_F(InCgroups, ANameThatIsMeantToHurtIsTakenAsItIs) {
  const Cgroup cgroup(name("\"\x1b]0;x<script>\\"));
  const Child child([&] { return send_from(cgroup); });
  OwnerFinder finder;
  EXPECT_EQ(owner_of(finder, udp_flow(child.port())).cgroup, cgroup.path());
}

TEST(Cgroups, TheMountThatShowsTheMostIsTaken) {
  EXPECT_EQ(cgroup2_mount("29 24 0:25 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"
                          "30 29 0:26 /lxc /mnt rw shared:9 - cgroup2 cgroup2 rw\n"
                          "31 29 0:26 / /sys/fs/cgroup/unified rw shared:9 - cgroup2 cgroup2 rw\n"
                          "32 29 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            "/sys/fs/cgroup/unified");
  EXPECT_FALSE(cgroup2_mount("29 24 0:25 / /sys/fs/cgroup ro - tmpfs cgroup2 ro\n"));
}

// --- Containers ------------------------------------------------------------------------------------------------------

const std::string kId = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const std::string kOther = std::string(64, 'b');

TEST(Containers, AreKnownByTheirCgroups) {
  for (const std::string& path :
       {"/machine.slice/libpod-" + kId + ".scope", "/libpod_parent/libpod-" + kId,
        "/machine.slice/libpod-" + kId + ".scope/container", "/docker/" + kId, "/system.slice/docker-" + kId + ".scope",
        "/kubepods.slice/kubepods-pod7.slice/cri-containerd-" + kId + ".scope",
        "/kubepods.slice/crio-" + kId + ".scope", "/docker/" + kId + "/docker/" + kOther}) {
    EXPECT_EQ(container_of(path), kId) << path;
  }
  for (const std::string& path :
       {std::string("/"), "/machine.slice/libpod-conmon-" + kId + ".scope", "/docker/" + kId.substr(1),
        "/docker/" + kId + "0", "/docker-" + kId + ".service", "/docker/g" + kId.substr(1)}) {
    EXPECT_EQ(container_of(path), "") << path;
  }
}

TEST(Containers, NamesAreReadFromPodmanAndFromDocker) {
  EXPECT_THAT(parse_container_names(R"([{"id":"a1","names":["web","w"],"image":""},{"id":"a2","names":null},7,{}])"),
              ElementsAre(Pair("a1", "web")));
  EXPECT_THAT(parse_container_names(R"([{"Id":"a1","Names":["/\"\n\u001b]0;x"]}])"),
              ElementsAre(Pair("a1", "\"\n\x1b]0;x")));
  for (const char* none : {"", "{}", "[", "[[]]", R"([{"id":7,"names":["a"]}])", "\xff"}) {
    EXPECT_THAT(parse_container_names(none), IsEmpty()) << none;
  }
}

TEST(Containers, AddressesAreReadFromTheKernelsTables) {
  const auto addresses = local_addresses(
      "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.88.0.0\n"
      "        /16 link UNICAST\n     |-- 10.88.0.7\n        /32 host LOCAL\n     |-- 127.0.0.1\n        /32 host "
      "LOCAL\n"
      "     |-- 10.88.255.255\n        /32 link BROADCAST\nLocal:\n     |-- 10.88.0.7\n        /32 host LOCAL\n",
      "fe8000000000000000fc00fffe000001 04 40 20 80     eth0\n00000000000000000000000000000001 01 80 10 80       lo\n"
      "fd000000000000000000000000000002 04 40 00 82     eth0\nx\n");
  EXPECT_THAT(addresses, ElementsAre(parse_address("10.88.0.7")->second, parse_address("fd00::2")->second));
}

/// An engine at a local socket that says `answer` to one who asks, or nothing.
class Engine {
 public:
  explicit Engine(std::string answer) : path_(testing::TempDir() + "engine-" + std::to_string(::getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
    ::unlink(path_.c_str());
    socket_ = Fd(require(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket"));
    require(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), "bind");
    require(::listen(socket_.get(), 8), "listen");
    if (answer.empty()) return;
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Fd client(::accept(socket_.get(), nullptr, nullptr));
      std::array<char, 4096> question{};
      if (::read(client.get(), question.data(), question.size() - 1) > 0) question_ = question.data();
      std::string rest = answer;
      send_what_fits(client.get(), rest);
    });
  }
  ~Engine() {
    ::shutdown(socket_.get(), SHUT_RDWR);  // accept() ends
    if (thread_.joinable()) thread_.join();
    ::unlink(path_.c_str());
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// What was asked.
  [[nodiscard]] const std::string& question() {
    if (thread_.joinable()) thread_.join();
    return question_;
  }

 private:
  std::string path_;
  Fd socket_;
  std::string question_;
  std::thread thread_;
};

TEST(Containers, AnEngineIsAskedForNames) {
  Engine engine("HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"Id\":\"" + kId +
                "\",\"Names\":[\"/web\"]}]");
  ContainerNames names({{engine.path()}, {}});
  EXPECT_EQ(names.find(kId), std::nullopt);
  names.learn({kId, kOther});
  EXPECT_EQ(names.find(kId), "web");
  EXPECT_EQ(names.find(kOther), "") << "it is known to have none";
  EXPECT_TRUE(engine.question().starts_with("GET /containers/json?all=true HTTP/1.0\r\n")) << engine.question();
}

TEST(Containers, AnEngineThatRefusesOrIsSilentHasNoNames) {
  {
    const Engine engine("HTTP/1.0 500 Oops\r\n\r\n[]");
    EXPECT_EQ(ask_engine(engine.path(), "/", std::chrono::seconds{5}), "");
  }
  const Engine silent("");
  const Instant start = monotonic_now();
  ContainerNames names({{silent.path()}, {}});
  names.learn({kId});
  EXPECT_LT(monotonic_now() - start, std::chrono::milliseconds{400});
  EXPECT_EQ(names.find(kId), "");
}

/// Podman's list with one container.
std::string list_with(const std::string& id, const std::string& container) {
  const std::string path = testing::TempDir() + "containers-" + std::to_string(::getpid()) + ".json";
  std::ofstream(path) << R"([{"id":")" << id << R"(","names":[")" << container << R"("]}])";
  return path;
}

TEST_F(InCgroups, AContainerWithoutANetworkOfItsOwnIsFoundByItsSocket) {
  const Cgroup machine(name("machine"));
  const Cgroup cgroup(machine.path() + "/libpod-" + kId);
  const Child child([&] { return send_from(cgroup); });
  OwnerFinder finder({{}, {list_with(kId, "web")}});
  const Owner owner = owner_of(finder, udp_flow(child.port()));
  EXPECT_EQ(owner.container, kId);
  EXPECT_EQ(owner.container_name, "web");
  EXPECT_EQ(owner.pid, child.pid());
}

/// In a child: in a network of its own with these addresses, IPv4 and IPv6.
std::uint16_t live_apart(const Cgroup& cgroup) {
  cgroup.take(::getpid());
  require(::unshare(CLONE_NEWNET), "unshare");
  for (const char* address : {"198.51.100.7/32", "2001:db8:7::7/128"}) {
    if (std::system(("ip addr add " + std::string(address) + " dev lo").c_str()) != 0) return 0;
  }
  return 1;
}

TEST_F(InCgroups, AContainerOnABridgeIsFoundByItsAddress) {
  OwnerFinder finder({{}, {list_with(kId, "web")}});
  const auto flow = [](std::string_view address) { return ask(kTcp, address, 443, 40'000); };
  EXPECT_EQ(owner_of(finder, flow("198.51.100.7")), Owner()) << "nobody has that address";
  const Cgroup machine(name("machine"));
  const Cgroup cgroup(machine.path() + "/libpod-" + kId);
  const Cgroup next(machine.path() + "/docker-" + kOther + ".scope");
  std::optional<Child> child(std::in_place, [&] { return live_apart(cgroup); });
  ASSERT_EQ(child->port(), 1);
  for (const char* address : {"198.51.100.7", "2001:db8:7::7"}) {
    const Owner owner = owner_of(finder, flow(address));
    EXPECT_EQ(owner.cgroup, cgroup.path());
    EXPECT_EQ(owner.container, kId);
    EXPECT_EQ(owner.container_name, "web");
    EXPECT_EQ(owner.process, "");
    EXPECT_EQ(owner.pid, 0U);
  }
  EXPECT_EQ(owner_of(finder, flow("198.51.100.8")), Owner());
  child.reset();
  EXPECT_EQ(owner_of(finder, flow("198.51.100.7")), Owner()) << "it has ended";
  child.emplace([&] { return live_apart(next); });
  EXPECT_EQ(owner_of(finder, flow("198.51.100.7")).container, kOther) << "another one has its address now";
}

}  // namespace
}  // namespace shaper
