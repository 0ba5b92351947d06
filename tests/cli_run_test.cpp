// `shaper run` as its command meets it. With a limit, on real packets: netns-scripts/run.
#include <sys/stat.h>
#include <unistd.h>

#include "tests/cli_program.h"

namespace shaper {
namespace {

using testing::HasSubstr;

using CliRun = Cli;

TEST_F(CliRun, TheCommandsEndIsOurs) {
  EXPECT_EQ(shaper("run -- true").code, 0);
  EXPECT_EQ(shaper("run -- sh -c 'exit 7'").code, 7);
  EXPECT_EQ(shaper("run -- sh -c 'kill -9 $$'").code, 128 + 9);
  EXPECT_EQ(shaper("run -- sh -c 'kill -PIPE $$'").code, 128 + 13);
  const Ended ended = shaper("run -- sh -c 'echo out; echo err >&2'");
  EXPECT_EQ(ended.output, "out\n");
  EXPECT_EQ(ended.errors, "err\n");
  EXPECT_EQ(shell("echo in | '" + program() + "' run -- cat").output, "in\n");
}

TEST_F(CliRun, TheCommandIsInOurPlace) {
  const Ended ended = shell("sh -c 'echo $$; exec \"" + program() + "\" run -- sh -c \"echo \\$\\$\"'");
  const std::size_t line = ended.output.size() / 2;
  EXPECT_GT(line, 1U);
  EXPECT_EQ(ended.output.substr(0, line), ended.output.substr(line)) << "one process id";
}

TEST_F(CliRun, ItsWordsAreLeftAlone) {
  EXPECT_EQ(shaper("run -- printf '%s\\n' '[a,b]' '' -- --rate 5 -h '{}'").output, "[a,b]\n\n--\n--rate\n5\n-h\n{}\n");
}

TEST_F(CliRun, NothingOfOursIsPassedOn) {
  EXPECT_EQ(shaper("run -- ls -l /proc/self/fd").output.find("socket"), std::string::npos);
  EXPECT_EQ(shaper("run -- ls /proc/self/fd").output, shell("ls /proc/self/fd").output);
  EXPECT_EQ(shell("env -i A=1 'B=x y' '" + program() + "' run -- /usr/bin/env").output, "A=1\nB=x y\n");
  const std::string signals = "grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status";
  EXPECT_EQ(shaper("run -- " + signals).output, shell(signals).output);
}

TEST_F(CliRun, WhatCannotBeRunIsToldAsAShellTellsIt) {
  write("text", "no program");
  std::filesystem::create_directory(folder_ / "folder");
  struct Case {
    const char* command;
    int code;
    const char* says;
  };
  for (const Case& each :
       {Case{"no-such-command", 127, "shaper: 'no-such-command' cannot be run: No such file or directory\n"},
        Case{"./absent", 127, "shaper: './absent' cannot be run: No such file or directory\n"},
        Case{"''", 127, "shaper: '' cannot be run: No such file or directory\n"},
        Case{"./text", 126, "shaper: './text' cannot be run: Permission denied\n"},
        Case{"./folder", 126, "shaper: './folder' cannot be run: Permission denied\n"},
        Case{"\"$(printf '\\033]0;x')\"", 127, "shaper: '\\x1b]0;x' cannot be run: No such file or directory\n"}}) {
    const Ended ended = shaper(std::string("run -- ") + each.command);
    EXPECT_EQ(ended.code, each.code) << each.command;
    EXPECT_EQ(ended.errors, each.says);
    expect_one_line(ended);
  }
}

TEST_F(CliRun, WrongUsageIsTwoAndRunsNothing) {
  for (const char* arguments :
       {"run", "run --", "run touch ran", "run --rate 5mbit", "run --rate 5mbit --", "run --rate 5 -- touch ran",
        "run --rate -- touch ran", "run --rate 0mbit -- touch ran", "run --colour red -- touch ran"}) {
    const Ended ended = shaper(arguments);
    EXPECT_EQ(ended.code, 2) << arguments;
    expect_one_line(ended);
  }
  EXPECT_THAT(shaper("run --").errors, HasSubstr("a COMMAND behind '--' is missing"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

TEST_F(CliRun, ALimitNeedsADaemon) {
  const Ended ended = shaper("run --rate 5mbit -- touch ran");
  EXPECT_EQ(ended.code, 3);
  EXPECT_THAT(ended.errors, HasSubstr("no daemon runs here"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

TEST_F(CliRun, UnderSudoTheCommandIsTheCallers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string run = "'" + program() + "' run -- ";
  const Ended ended = shell(
      "SUDO_UID=65534 SUDO_GID=65534 " + run +
      "sh -c 'id -ru; id -u; id -rg; id -G; echo $HOME $USER $LOGNAME; grep -E \"^Cap(Prm|Eff)\" /proc/self/status'");
  EXPECT_EQ(ended.errors, "");
  EXPECT_EQ(ended.output,
            "65534\n65534\n65534\n65534\n/nonexistent nobody nobody\n"
            "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\n");
  EXPECT_EQ(shell("SUDO_UID=0 SUDO_GID=0 " + run + "id -u").output, "0\n");
  EXPECT_EQ(shell("SUDO_UID=4000000000 SUDO_GID=4000000001 " + run + "sh -c 'id -u; id -G; echo $HOME $USER'").output,
            "4000000000\n4000000001\n/ 4000000000\n")
      << "nobody here has this number";
  std::filesystem::create_directory(folder_ / "closed");
  ::chmod((folder_ / "closed").c_str(), 0700);
  EXPECT_EQ(shell("SUDO_UID=65534 SUDO_GID=65534 PATH=\"$PWD/closed:$PATH\" " + run + "no-such-command").code, 127)
      << "it may not look into a folder of PATH";
  for (const std::string user : {"SUDO_UID=4294967295 SUDO_GID=5", "SUDO_UID=5 SUDO_GID=4294967295", "SUDO_UID=5",
                                 "SUDO_UID=-1 SUDO_GID=5", "SUDO_UID=nobody SUDO_GID=5", "SUDO_UID='' SUDO_GID=5"}) {
    const Ended refused = shell("env -u SUDO_GID " + user + " " + run + "touch ran");
    EXPECT_EQ(refused.code, 1) << user;
    EXPECT_THAT(refused.errors, HasSubstr("is nobody's number")) << user;
    expect_one_line(refused);
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "ran"));
}

}  // namespace
}  // namespace shaper
