// The lines of an event log about the grants of cluster limits.
#include <tuple>

#include "shaper/model/address_text.h"
#include "shaper/model/event_words.h"

namespace shaper {
namespace {

/// The words behind a grant that say which bucket of the limit it is for.
void key_option(LineReader& line, FlowKey& of) {
  const auto [key, value] = key_and_value(line.word());
  const std::string what = "a number as a key's property";
  if (key == "flow") {
    read_flow(line, of);
  } else if (key == "key") {
    const auto address = parse_address(value);
    if (!address) line.fail("an address in `key=`");
    if (address) std::tie(of.family, of.source) = *address;
  } else if (key == "link") {
    of.link = line.number_in<LinkIndex>(value, what);
  } else if (key == "mark") {
    of.mark = line.number_in<std::uint32_t>(value, what);
  } else if (key == "dscp") {
    of.dscp = line.number_in<std::uint32_t>(value, what);
  } else {
    line.fail("one of key=, flow, link=, mark=, dscp=");
  }
}

}  // namespace

event::Granted granted(LineReader& line) {
  Grant grant;
  grant.to.limit = index_of<LimitIndex>(line, "limit");
  grant.bytes.value = line.number_of<std::uint64_t>("bytes");
  grant.valid_until = Instant{Nanos{line.number_of<std::int64_t>("until")}};
  grant.pace.bits_per_second = line.number_of<std::uint64_t>("pace");
  while (!line.at_end() && line.error().empty()) key_option(line, grant.to.key);
  return {grant};
}

event::TakenBack taken_back(LineReader& line) {
  event::TakenBack taken;
  taken.from.limit = index_of<LimitIndex>(line, "limit");
  taken.bytes.value = line.number_of<std::uint64_t>("bytes");
  while (!line.at_end() && line.error().empty()) key_option(line, taken.from.key);
  return taken;
}

event::Refused refused(LineReader& line) {
  event::Refused refused;
  refused.at.limit = index_of<LimitIndex>(line, "limit");
  refused.on = line.number_of<std::uint32_t>("on") != 0;
  while (!line.at_end() && line.error().empty()) key_option(line, refused.at.key);
  return refused;
}

event::Granting granting(LineReader& line) {
  WalletState wallet;
  wallet.limit = index_of<LimitIndex>(line, "limit");
  wallet.left.value = line.number_of<std::uint64_t>("left");
  wallet.debt.value = line.number_of<std::uint64_t>("debt");
  wallet.largest.value = line.number_of<std::uint64_t>("largest");
  wallet.pace.bits_per_second = line.number_of<std::uint64_t>("pace");
  wallet.frame.value = line.number_of<std::uint64_t>("frame");
  wallet.credit_nanobits = line.number_of<std::uint64_t>("credit");
  while (!line.at_end() && line.error().empty()) {
    const auto [key, value] = key_and_value(line.word());
    if (key == "until") {
      wallet.valid_until = Instant{Nanos{line.number_in<std::int64_t>(value, "a time in `until=`")}};
    } else if (key == "refuses") {
      wallet.refuses = true;
    } else {
      line.fail("one of until=, refuses");
    }
  }
  return {wallet};
}

}  // namespace shaper
