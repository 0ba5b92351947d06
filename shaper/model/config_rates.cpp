// Which rates and bursts go together, with each other and with the link.
#include "shaper/model/advice.h"
#include "shaper/model/config_parts.h"
#include "shaper/model/units_text.h"

namespace shaper {
namespace {

// One full frame comes on top of the burst, up to 512 KiB of it (BIG TCP): 1 MiB is kept for that.
constexpr ByteCount kDeepestBurst{kDeepestBucket.value - (std::uint64_t{1} << 20)};
// What a policer must let through in a row, so that TCP can reach its rate.
// How late a timer wakes us on an idle virtual machine, 99th percentile.
constexpr Nanos kUsualLateness = std::chrono::microseconds{250};
// A burst that keeps less of the rate than this is warned of.
constexpr unsigned kEnoughPercent = 95;
// Classes that one warning names.
constexpr std::size_t kMostNamed = 8;

Framing framing_of(const LinkPolicy& link) {
  return {.overhead = link.overhead, .smallest_frame = link.smallest_frame, .cells = link.cells};
}

void warn_of_guarantee(const TableReader& reader, const ClassPolicy& policy, const LinkPolicy& link) {
  const auto asked = policy.guarantee();
  if (link.rate || !asked || policy.limit() == asked) return;
  const std::string what_holds = policy.ceil_is_link ? "nothing holds" : "only the ceil holds";
  reader.diagnostics().warning(reader.position_of("rate"),
                               "a guarantee cannot be enforced on a link without a rate: " + what_holds);
}

void warn_of_ceil(const TableReader& reader, const ClassPolicy& policy, const LinkPolicy& link) {
  if (!link.rate || !policy.ceil || *policy.ceil <= *link.rate) return;
  reader.diagnostics().warning(reader.position_of("ceil"), "the ceil, " + format_rate(*policy.ceil) +
                                                               ", is above the rate of link \"" + link.name + "\", " +
                                                               format_rate(*link.rate) + ", which holds");
}

}  // namespace

BucketSpec bucket_of(DataRate rate, const Burst& burst, const Framing& framing) {
  return {rate, framing.full_frame(), burst_bytes(burst, rate)};
}

unsigned kept_when_late(const BucketSpec& bucket, Nanos late) {
  // Full frames wait. We ask to be woken when the credit covers one, and by then rate x late more has come in, of which
  // only the burst fits. Where it does not fit, the bucket is full at every wake-up: depth / frame frames leave, and
  // for what they weigh the time is paid in which they were earned plus that in which nothing could be.
  const ByteCount earned_late = bytes_in(bucket.rate, late);
  if (earned_late <= bucket.burst) return 100;
  const std::uint64_t sent = bucket.depth().value / bucket.frame.value * bucket.frame.value;
  const std::uint64_t lost = (earned_late - bucket.burst).value;
  return static_cast<unsigned>(100 * sent / (sent + lost));
}

void check_burst(const TableReader& reader, const BucketSpec& bucket, Over over) {
  const tree::Position position = reader.position_of("burst");
  if (bucket.burst > kDeepestBurst) {
    reader.diagnostics().error(position, "a burst of " + format_size(bucket.burst) +
                                             " is larger than a bucket may hold, " + format_size(kDeepestBurst));
    return;
  }
  const ByteCount advised = bytes_in(bucket.rate, kAdvisedPolicerBurst);
  if (over == Over::drop && bucket.burst < advised) {
    reader.diagnostics().warning(position, "a policer with a burst of " + format_size(bucket.burst) +
                                               " drops what TCP sends in a row and stays below its rate: burst = "
                                               "\"50ms\" (" +
                                               format_size(advised) + ") or more is advised");
  }
  const unsigned kept = kept_when_late(bucket, kUsualLateness);
  if (over == Over::delay && kept < kEnoughPercent) {
    reader.diagnostics().warning(position, "this burst keeps " +
                                               (kept == 0 ? "less than 1" : "about " + std::to_string(kept)) +
                                               " % of the rate when wake-ups come " + format_time(kUsualLateness) +
                                               " late; burst = \"4ms\" keeps all of it");
  }
}

void check_class_on_link(const TableReader& reader, const ClassPolicy& policy, const LinkPolicy& link) {
  warn_of_guarantee(reader, policy, link);
  warn_of_ceil(reader, policy, link);
  // Where the link is the only bound, the burst is that of the guarantee.
  if (const auto rate = policy.limit() ? policy.limit() : policy.rate) {
    check_burst(reader, bucket_of(*rate, policy.burst, framing_of(link)), policy.over);
  }
  if (!policy.each) return;
  const tree::Entry& entry = *reader.find("each");
  const TableReader each(std::get<tree::Table>(entry.node.value), entry.node.position, kEachLevel,
                         reader.diagnostics());
  check_burst(each, bucket_of(policy.each->rate, policy.each->burst, framing_of(link)), policy.over);
}

void warn_of_overcommitted_links(const ReadLinks& links, std::span<const ClassPolicy> classes,
                                 Diagnostics& diagnostics) {
  const auto count = static_cast<LinkIndex>(links.policies.size());
  for (LinkIndex link = 0; link < count; ++link) {
    const auto rate = links.policies[link].rate;
    const DataRate sum = rate ? sum_of_guarantees(classes, link) : DataRate{};
    if (!rate || sum <= *rate) continue;
    std::string in_force;
    std::size_t named = 0;
    for (const ClassPolicy& each : classes) {
      const auto asked = each.guarantee();
      if (each.link != link || !asked || ++named > kMostNamed) continue;
      in_force +=
          (named == 1 ? " \"" : ", \"") + each.name + "\" gets " + format_rate(guarantee_in_force(*asked, sum, *rate));
    }
    if (named > kMostNamed) in_force += ", and so on for " + std::to_string(named - kMostNamed) + " more";
    diagnostics.warning(links.rates[link], "the guarantees on this link come to " + format_rate(sum) +
                                               ", more than its " + format_rate(*rate) +
                                               ", and are scaled down in proportion:" + in_force);
  }
}

}  // namespace shaper
