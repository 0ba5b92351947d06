// The program `shaper` as a user without privileges meets it: output, messages, exit codes.
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "shaper/model/report.h"
#include "tests/cli_program.h"

namespace shaper {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(Cli, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(shaper("--help").code, 0);
  EXPECT_THAT(shaper("--help").output, HasSubstr("replay"));
  EXPECT_EQ(shaper("up --help").code, 0);
  EXPECT_THAT(shaper("--version").output, StartsWith("shaper "));
}

TEST_F(Cli, AWrongValueOfFlowsIsTwoAndSaysWhatIsRight) {
  struct Case {
    const char* options;
    const char* says;
  };
  for (const Case& each : {Case{"--sort colour", "--sort is one of rate, bytes, packets"},
                           Case{"--address 10.0.0.0/33", "--address: '10.0.0.0/33' is no address; write 10.0.0.1"},
                           Case{"--address web", "is no address"}, Case{"--port 0", "--port"},
                           Case{"--port 65536", "--port"}, Case{"--protocol tpc", "is no protocol; write a number"},
                           Case{"--user no-such-user", "no user is called 'no-such-user'"},
                           Case{"--user \"$(printf '\\033]0;x')\"", "no user is called '\\x1b]0;x'"},
                           Case{"--limit 0", "--limit"}, Case{"--watch 0", "--watch"}, Case{"--watch never", "--watch"},
                           Case{"--interval 0.5", "--interval"}, Case{"--watch 2 --interval 3", "--interval"}}) {
    const Ended ended = shaper(std::string("flows ") + each.options);
    EXPECT_EQ(ended.code, 2) << each.options;
    EXPECT_THAT(ended.errors, HasSubstr(each.says)) << each.options;
    expect_one_line(ended);
  }
}

TEST_F(Cli, WrongUsageIsTwo) {
  for (const char* arguments : {"",
                                "frobnicate",
                                "check",
                                "check a b",
                                "up --interface eth0",
                                "up --rate 5mbit",
                                "up --colour red",
                                "up a.toml --interface eth0 --rate 5mbit",
                                "flows --sort colour",
                                "flows -n many",
                                "replay",
                                "explain",
                                "limit user=root 5",
                                "limit users=root 5mbit",
                                "limit user 5mbit",
                                "limit local=1.2.3.4,local=1.2.3.5 5mbit",
                                "limit user=root 5mbit --for 0s",
                                "unlimit x",
                                "limit pid=0 5mbit",
                                "limit unit=backup 5mbit",
                                "up --interface 'a b' --rate 5mbit",
                                "up --interface eth0 --rate 30",
                                "up --backend nice",
                                "serve --listen localhost:9469",
                                "serve --listen 127.0.0.1",
                                "serve --listen 127.0.0.1:0",
                                "serve --host 'a b'"}) {
    const Ended ended = shaper(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    expect_one_line(ended);
  }
}

TEST_F(Cli, WhatComesLaterIsRefusedByName) {
  const Ended ended = shaper("cluster set x rate=1mbit");
  EXPECT_EQ(ended.code, 2);
  EXPECT_THAT(ended.errors, HasSubstr("'cluster set' is not in this version"));
  expect_one_line(ended);
}

TEST_F(Cli, AReportIsAWholeFileOrNone) {
  const std::string replay =
      "replay '" + capture("policed.pcap") + "' --policy '" + capture("policy.toml") + "' --events log --html ";
  ASSERT_EQ(shaper(replay + "page").code, 0);
  const std::string page = content_of(folder_ / "page");
  EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
  EXPECT_THAT(page, HasSubstr("<h1>policed.pcap</h1>"));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
  EXPECT_EQ(fs::status(folder_ / "page").permissions() & fs::perms::group_read, fs::perms::group_read);

  fs::create_symlink("page", folder_ / "link");
  ASSERT_EQ(shaper("replay log --html link").code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_THAT(content_of(folder_ / "page"), HasSubstr("<h1>log</h1>")) << "replaced where the link leads to";

  struct Case {
    const char* place;
    int code;
    const char* message;
  };
  fs::create_directory(folder_ / "folder");
  for (const Case& each : {Case{"-", 2, "--html: standard output is taken by the tables; name a file"},
                           Case{"folder", 1, "folder is there and is not a file"},
                           Case{"/dev/null", 1, "/dev/null is there and is not a file"},
                           Case{"absent/page", 1, "absent/page: No such file or directory"}}) {
    const Ended ended = shaper(replay + each.place);
    EXPECT_EQ(ended.code, each.code) << each.place;
    EXPECT_THAT(ended.errors, HasSubstr(each.message));
    expect_one_line(ended);
  }
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr("page."))) << "no draft is left";
  }
}

TEST_F(Cli, ABadPolicyIsTwoWithItsPlace) {
  write("bad.toml",
        "version = 1\n[[link]]\nname = \"up\"\ninterface = \"eth0\"\n[[class]]\nname = \"a\"\nlink = \"up\"\nrate = "
        "\"30\"\n");
  for (const char* arguments :
       {"check bad.toml", "up --dry-run bad.toml", "explain --policy bad.toml 'icmp ::1 > ::2'"}) {
    const Ended ended = shaper(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    EXPECT_THAT(ended.errors, StartsWith("bad.toml:8:8: ")) << arguments;
    expect_one_line(ended);
  }
}

TEST_F(Cli, AFileThatCannotBeReadIsOne) {
  fs::create_directory(folder_ / "folder");
  std::ofstream(folder_ / "large").seekp(2 << 20) << "x";
  const std::string with_policy = "--policy '" + capture("policy.toml") + "'";
  for (const auto& [arguments, message] : std::initializer_list<std::pair<std::string, const char*>>{
           {"check absent.toml", "absent.toml: No such file"},
           {"check folder", "folder: not a regular file"},
           {"check /dev/zero", "/dev/zero: not a regular file"},
           {"check large", "large: larger than"},
           {"replay absent " + with_policy, "absent: No such file"},
           {"replay folder " + with_policy, "folder: Is a directory"},
           {"replay '" + capture("empty.pcap") + "' " + with_policy, "the file is empty"},
           {"replay '" + capture("policed.pcap") + "' " + with_policy + " --events folder", "folder: Is a directory"},
       }) {
    const Ended ended = shaper(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_THAT(ended.errors, HasSubstr(message)) << arguments;
    expect_one_line(ended);
  }
}

TEST_F(Cli, CheckPrintsThePolicyAsUnderstood) {
  const Ended ended = shaper("check '" + capture("policy.toml") + "'");
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("policed"));
}

TEST_F(Cli, CheckSaysWhoAClassIsFor) {
  const std::string policy = R"(version = 1
[[link]]
name = "up"
interface = "eth0"
[[limit]]
name = "users"
rate = "2mbit"
by = "user"
[[class]]
name = "backup"
link = "up"
match = [
  { unit = "backup.service", not = { pid = 1 } },
  { process = ["rsync", 'tmux: "a"'], container = "web" },
  { cgroup = "user.slice/" },
]
each = { by = "process", rate = "1mbit" }
limits = "users"
)";
  write("owners.toml", policy);
  const Ended ended = shaper("check owners.toml");
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(ended.errors, "");
  for (const char* line :
       {"owners          found out: keys of this policy ask for them\n",
        "match           unit backup.service, not (pid 1)\n",
        "   or           process rsync or \"tmux: \\\"a\\\"\", container web\n", "   or           cgroup /user.slice\n",
        "1 Mbit/s = 125 kB/s each process, at most\n", "2 Mbit/s = 250 kB/s each user, at most\n"}) {
    EXPECT_THAT(ended.output, HasSubstr(line));
  }

  std::string bad = policy;
  write("bad.toml", bad.replace(bad.find("pid = 1"), 7, "pid = 0"));
  const Ended refused = shaper("check bad.toml");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.errors, "bad.toml:13:44: \"pid\" must be the number of a process, from 1 to 4194303\n");
}

TEST_F(Cli, ExplainAsksAFile) {
  const std::string policy = " --policy '" + capture("policy.toml") + "'";
  const Ended ended = shaper("explain 'udp 10.0.0.1:1 > 10.0.0.2:2'" + policy);
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, StartsWith("uplink: class policed (match 1 of 1 holds): total 2 Mbit/s"));
  EXPECT_EQ(shaper("explain tcp 10.0.0.1:1 '>' 10.0.0.2:2" + policy).code, 0) << "words apart";
  EXPECT_EQ(shaper("explain 'tcp 10.0.0.1 > 10.0.0.2'" + policy).code, 2) << "no ports";
}

TEST_F(Cli, ReplayOfACaptureForProgramsIsBothObjects) {
  const Ended ended =
      shaper("replay '" + capture("policed.pcap") + "' --json --policy '" + capture("policy.toml") + "'");
  ASSERT_EQ(ended.code, 0) << ended.errors;
  const auto status = parse_status(ended.output);
  ASSERT_TRUE(status) << status.error();
  EXPECT_EQ(status->classes.front().sent_packets + status->classes.front().dropped_packets, 100u);
  const auto flows = parse_flows(ended.output);
  ASSERT_TRUE(flows) << flows.error();
  EXPECT_EQ(flows->flows.size(), 1u);
}

TEST_F(Cli, TheEventLogOfAReplayIsReplayed) {
  const std::string policy = " --policy '" + capture("policy.toml") + "'";
  ASSERT_EQ(shaper("replay '" + capture("supers.pcap") + "' --events log" + policy).code, 0);
  const Ended ended = shaper("replay log");
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, HasSubstr("verdicts, all as in the log"));
  EXPECT_EQ(shaper("replay log" + policy).code, 2) << "a log has its policy in it";

  ASSERT_EQ(shaper("replay - --events again <log").code, 0);
  std::string log = content_of(folder_ / "log");
  EXPECT_EQ(content_of(folder_ / "again"), log) << "a log that is replayed is written with the same words";

  log.replace(log.rfind("wire="), 6, "wire=9");
  write("log", log);
  const Ended changed = shaper("replay log");
  EXPECT_EQ(changed.code, 1);
  EXPECT_THAT(changed.errors, HasSubstr("the log has `accept"));
}

TEST_F(Cli, ACaptureMayComeThroughAPipe) {
  const std::string file = "'" + capture("policed.pcap") + "'";
  const std::string policy = " --policy '" + capture("policy.toml") + "'";
  const Ended whole = shaper("replay " + file + policy);
  EXPECT_THAT(whole.output, StartsWith("100 packets replayed\n\n"));
  EXPECT_EQ(whole.errors, "") << "no progress where stderr is no terminal";
  EXPECT_EQ(shaper("replay - <" + file + policy).output, whole.output);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::thread writer([&] { std::ofstream(folder_ / "pipe") << content_of(capture("policed.pcap")); });
  EXPECT_EQ(shaper("replay pipe" + policy).output, whole.output);
  writer.join();
  const Ended empty = shaper("replay - </dev/null" + policy);
  EXPECT_EQ(empty.code, 1);
  EXPECT_THAT(empty.errors, HasSubstr("-: the file is empty"));
}

TEST_F(Cli, ACaptureThatIsCutShortCountsAndIsToldOf) {
  const std::string command = "replay '" + capture("cut.pcap") + "' --policy '" + capture("policy.toml") + "'";
  const char* const told = "the capture ends in the middle of packet 100; what came before counts";
  const Ended ended = shaper(command);
  EXPECT_EQ(ended.code, 0) << ended.errors;
  EXPECT_THAT(ended.output, StartsWith("99 packets replayed\n"));
  EXPECT_THAT(ended.output, HasSubstr(std::string("\nwarning: ") + told));
  const auto status = parse_status(shaper(command + " --json").output);
  ASSERT_TRUE(status) << status.error();
  EXPECT_THAT(status->warnings, testing::ElementsAre(told));
}

TEST_F(Cli, ReplayNeedsALinkWhereThereAreSeveral) {
  write("two.toml",
        "version = 1\n[[link]]\nname = \"a\"\ninterface = \"eth0\"\n[[link]]\nname = \"b\"\ninterface = \"eth1\"\n");
  const std::string command = "replay '" + capture("policed.pcap") + "' --policy two.toml";
  EXPECT_EQ(shaper(command).code, 2);
  EXPECT_THAT(shaper(command).errors, HasSubstr("say --link with one of a, b"));
  EXPECT_EQ(shaper(command + " --link c").code, 2);
  const Ended ended = shaper(command + " --link b --json");
  ASSERT_EQ(ended.code, 0) << ended.errors;
  EXPECT_EQ(parse_status(ended.output)->links.at(1).sent_packets, 100u);
}

}  // namespace
}  // namespace shaper
