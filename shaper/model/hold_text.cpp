#include "shaper/model/hold_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "shaper/model/report.h"
#include "shaper/model/tables.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

std::string packets(std::uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "packet" : "packets");
}

std::string milliseconds(Nanos time) {
  return fmt::format("{:.2f} ms", std::chrono::duration<double, std::milli>(time).count());
}

std::string credit_text(std::string_view of, const std::optional<ByteCount>& credit,
                        const std::optional<ByteCount>& depth) {
  if (!credit || !depth) return "";
  return fmt::format("; {}credit {} of {}", of, format_size(*credit), format_size(*depth));
}

/// "the ceil of class bulk"
std::string holder_text(const Policy& policy, const HeldBy& held, const FlowSnapshot& flow) {
  const std::string name = held_report(policy, held, flow.class_index, flow.link).name;
  switch (held.holder) {
    case Holder::each:
      return fmt::format("its own bucket of class {}, by each", name);
    case Holder::ceil:
      return fmt::format("the ceil of class {}", name);
    case Holder::limit:
      return fmt::format("limit {}", name);
    case Holder::cluster:
      return fmt::format("limit {} over several hosts", name);
    case Holder::link:
      break;
  }
  return fmt::format("link {}", name);
}

std::string bucket_text(const HoldSnapshot& hold) {
  std::string text;
  if (hold.rate) text += fmt::format(", {}", format_rate(*hold.rate));
  if (hold.credit && hold.depth) {
    text += fmt::format(", credit {} of {}", format_size(*hold.credit), format_size(*hold.depth));
  } else if (hold.credit) {
    text += fmt::format(", {} of its grants left", format_size(*hold.credit));
  }
  return text;
}

/// When the next packet may go, and at the flow's present rate the last one.
std::string departure_text(const HoldSnapshot& hold, Instant now) {
  std::string text = hold.earliest ? fmt::format("the next packet may leave in {}", milliseconds(*hold.earliest - now))
                     : hold.credit ? std::string("the next packet leaves after another grant")
                                   : std::string("the next packet leaves in its turn");
  if (hold.flow.rate > DataRate{}) {
    text += fmt::format(", the last one in about {}", milliseconds(time_for(hold.flow.rate, hold.flow.backlog_bytes)));
  }
  if (hold.flow.activity == FlowActivity::bulk) text += "; the flows of its class take turns";
  return text;
}

std::string percent_of_minute(Nanos time) {
  constexpr double kMinute = 60e9;
  return fmt::format("{:.0f} %", 100 * static_cast<double>(time.count()) / kMinute);
}

std::string minute_text(const HoldTimes& minute) {
  const Nanos held = std::accumulate(minute.begin(), minute.end(), Nanos{0});
  if (held == Nanos{0}) return "it was never held in the last minute: what limits it is elsewhere";
  std::string text = fmt::format("it was held for {} of the last minute", percent_of_minute(held));
  std::string_view joint = ": ";
  for (std::size_t i = 0; i < kHolders; ++i) {
    if (minute[i] == Nanos{0}) continue;
    text += fmt::format("{}{} by the {}", joint, percent_of_minute(minute[i]), holder_name(static_cast<Holder>(i)));
    joint = ", ";
  }
  return text;
}

}  // namespace

std::string describe_waiting(const Policy& policy, const CoreSnapshot& snapshot) {
  const ClassSnapshot& cls = snapshot.classes.front();
  const ClassPolicy& configured = policy.classes.at(cls.index);
  std::string text =
      cls.backlog_packets == 0
          ? "nothing waits in this class now"
          : fmt::format("now {} ({}) wait in this class", packets(cls.backlog_packets), format_size(cls.backlog_bytes));
  text += credit_text("", cls.credit, cls.depth);
  for (const LimitIndex limit : configured.limits) {
    const LimitSnapshot& bucket = snapshot.limits.at(limit);
    text += credit_text("limit's ", bucket.credit, bucket.depth);
  }
  const LinkSnapshot& link = snapshot.links.at(configured.link);
  text += credit_text("link's ", link.credit, link.depth);
  if (cls.wait && *cls.wait > Nanos{0}) text += fmt::format("; a full frame would wait {}", milliseconds(*cls.wait));
  return text + fmt::format("; delay p99 {}", milliseconds(cls.delay.p99));
}

std::string describe_hold(const Policy& policy, const HoldSnapshot& hold, Instant now) {
  const FlowSnapshot& flow = hold.flow;
  const std::string reasons = drop_reasons(flow.traffic.drops);
  const std::string drops = reasons.empty() ? "none was dropped" : "dropped: " + reasons;
  std::string text = fmt::format("  the flow: {} over the last second, {} sent, {}; delay p50 {}, p99 {}\n",
                                 format_rate(flow.rate), packets(flow.traffic.sent_packets), drops,
                                 milliseconds(flow.delay.p50), milliseconds(flow.delay.p99));
  if (flow.held_by) {
    text += fmt::format("  {} of it ({}) wait for {}{}\n", packets(flow.backlog_packets),
                        format_size(flow.backlog_bytes), holder_text(policy, *flow.held_by, flow), bucket_text(hold));
    text += fmt::format("  {}\n", departure_text(hold, now));
  } else {
    text += "  nothing of it waits now\n";
  }
  return text + fmt::format("  {}\n", minute_text(hold.minute));
}

}  // namespace shaper
