// A change that is taken back unless it is confirmed. Before it, what would be brought back is written down in the
// run-time folder, where the supervisor's `shaper revert` finds it whatever has died since.
#include "cli/confirm.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "cli/apply.h"
#include "cli/commands.h"
#include "shaper/live/whole_file.h"

namespace shaper::cli {
namespace {

void forget_fallback(const RuntimeFolder& folder) {
  ::unlink(folder.fallback().c_str());
}

/// The request to load that was in force, a line with the file's name and the text.
void bring_back(const RuntimeFolder& folder, const std::string& request) {
  const std::size_t line_end = request.find('\n');
  if (line_end == std::string::npos) throw CommandError(ExitCode::failed, "what was before cannot be read");
  const std::string name = request.substr(0, line_end);
  const LoadedPolicy policy = check_policy(request.substr(line_end + 1), name);
  ControlClient daemon = connect_or_fail();
  const auto record = undo_record_of(folder);
  const Applied applied =
      apply(daemon, folder, policy, name.starts_with('/') ? name : "", record ? record->backend : Backend::host);
  (void)daemon.request("disarm");
  std::fputs(describe(applied, policy.policy).c_str(), stdout);
}

}  // namespace

PendingChange::PendingChange(ControlClient& daemon, const RuntimeFolder& folder, Nanos time)
    : daemon_(daemon), folder_(folder) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(time).count();
  // Armed first: a fallback that is not there yet means that nothing has changed yet.
  first_ = ask(daemon, "revert-after", std::to_string(seconds)) == "first";
  if (!first_) return;  // what that one would bring back is what this one must
  forget_fallback(folder_);
  const auto written = write_whole_file(folder_.fallback(), ask(daemon, "policy"));
  if (!written) throw CommandError(ExitCode::failed, written.error());
}

void PendingChange::call_off() {
  if (!first_) return;
  (void)daemon_.request("disarm");
}

ExitCode confirm() {
  ControlClient daemon = connect_or_fail();
  (void)ask(daemon, "disarm");
  std::puts("confirmed");
  return ExitCode::done;
}

ExitCode revert() {
  require_permission();
  const auto folder = find_folder();
  if (!folder) throw CommandError(ExitCode::no_daemon, "no daemon runs here; nothing waits to be confirmed");
  const auto request = read_own_file(folder->fallback(), kLargestPolicy + 8192);
  if (!request) throw CommandError(ExitCode::failed, request.error());
  if (!*request) {  // the change did not come about, or was confirmed
    if (auto daemon = connect(folder)) (void)daemon->request("disarm");
    std::puts("nothing waits to be confirmed");
    return ExitCode::done;
  }
  ExitCode code = ExitCode::done;
  if ((*request)->empty()) {
    code = down(false);
  } else {
    bring_back(*folder, **request);
  }
  forget_fallback(*folder);
  return code;
}

}  // namespace shaper::cli
