// Rates, sizes and times as people write them: exact, with a unit, or refused.
//
// Nothing is rounded in either direction: "4.294gbit" is 4294000000 bit/s, and what cannot be said in whole bits per
// second (or bytes, or nanoseconds) is an error. A unit that people read in two ways ("30mbps", "30M") is refused with
// both readings. A space may stand between number and unit, so that what is written here can be read again.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "shaper/core/units.h"

namespace shaper {

/// `bit kbit mbit gbit tbit`, `kibit mibit gibit tibit` (all also as `Mbit/s`), or `B/s kB/s MB/s GB/s TB/s`,
/// `KiB/s MiB/s GiB/s TiB/s`; from kSlowestRate to kFastestRate. The error is a sentence for the user.
[[nodiscard]] tl::expected<DataRate, std::string> parse_rate(std::string_view text);

/// `B kB KiB MB MiB GB GiB`; above zero, at most 2^62 bytes.
[[nodiscard]] tl::expected<ByteCount, std::string> parse_size(std::string_view text);

/// `us ms s m h`; above zero, at most 100000 hours.
[[nodiscard]] tl::expected<Nanos, std::string> parse_time(std::string_view text);

/// "20 Mbit/s", "4.294 Gbit/s", "300 bit/s".
[[nodiscard]] std::string format_rate(DataRate rate);

/// "20 Mbit/s = 2.5 MB/s".
[[nodiscard]] std::string format_rate_both(DataRate rate);

/// "1514 B", "512 KiB", "2500 kB": the shortest whole number of one unit.
[[nodiscard]] std::string format_size(ByteCount size);

/// "250 ms", "1.5 s", "10 m".
[[nodiscard]] std::string format_time(Nanos time);

/// `text` in quotation marks if it is short and of plain characters, else `otherwise`: what users wrote must not reach
/// a terminal as it is.
[[nodiscard]] std::string quoted(std::string_view text, std::string_view otherwise = "this value");

}  // namespace shaper
