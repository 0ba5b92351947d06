// Quantities and addresses as text: tables of what is read, what is refused with which sentence, and what is written.
#include "shaper/model/units_text.h"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>
#include <vector>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

using namespace std::chrono_literals;

TEST(UnitsText, ReadsRatesExactly) {
  const std::vector<std::pair<std::string, std::uint64_t>> rates{
      {"300bit", 300},
      {"300 bit/s", 300},
      {"4.294gbit", 4'294'000'000},  // around 2^32 bit/s and 2^32 byte/s, where 32 bits wrap
      {"4.296gbit", 4'296'000'000},
      {"34.4gbit", 34'400'000'000},
      {"69gbit", 69'000'000'000},
      {"400gbit", 400'000'000'000},
      {"0.4tbit", 400'000'000'000},
      {"1.5mbit", 1'500'000},
      {"20mbit", 20'000'000},
      {"20Mbit/s", 20'000'000},
      {"20 Mbit/s", 20'000'000},
      {"020mbit", 20'000'000},
      {"1kibit", 1024},
      {"1Mibit/s", 1'048'576},
      {"0.3125kibit", 320},
      {"2.5MB/s", 20'000'000},
      {"37.5B/s", 300},
      {"37.625B/s", 301},
      {"1KiB/s", 8192},
      {"1GiB/s", 8'589'934'592},
      {"50GB/s", 400'000'000'000},
  };
  for (const auto& [text, bits] : rates) {
    const auto rate = parse_rate(text);
    ASSERT_TRUE(rate) << text << ": " << rate.error();
    EXPECT_EQ(rate->bits_per_second, bits) << text;
  }
}

TEST(UnitsText, RefusesRatesWithAReason) {
  const std::vector<std::pair<std::string, std::string>> refused{
      {"30", R"("30" has no unit: write "30bit" (30 bit/s) or "30B/s" (240 bit/s))"},
      {"30M", R"("30M" is ambiguous: write "30mbit" (30000000 bit/s) or "30MB/s" (240000000 bit/s))"},
      {"30mbps", R"("30mbps" is ambiguous: write "30mbit" (30000000 bit/s) or "30MB/s" (240000000 bit/s))"},
      {"30MBps", R"("30MBps" is ambiguous: write "30mbit" (30000000 bit/s) or "30MB/s" (240000000 bit/s))"},
      {"1.5mb", R"("1.5mb" is ambiguous: write "1.5mbit" (1500000 bit/s) or "1.5MB/s" (12000000 bit/s))"},
      {"30mb/s", R"("30mb/s" is ambiguous: write "30mbit" (30000000 bit/s) or "30MB/s" (240000000 bit/s))"},
      {"8Mibps", R"("8Mibps" is ambiguous: write "8mibit" (8388608 bit/s) or "8MiB/s" (67108864 bit/s))"},
      {"1KB/s", R"("1KB/s" is ambiguous: write "1kbit" (1000 bit/s) or "1kB/s" (8000 bit/s))"},
      {"0mbit", R"("0mbit" is zero)"},
      {"0.000gbit", R"("0.000gbit" is zero)"},
      {"-5mbit", R"("-5mbit" is negative)"},
      {"299bit", R"("299bit" is below the slowest rate, 300 bit/s)"},
      {"0.0001bit", R"("0.0001bit" is below the slowest rate, 300 bit/s)"},
      {"401gbit", R"("401gbit" is above the fastest rate, 400 Gbit/s)"},
      {"99999999999999999999tbit", R"("99999999999999999999tbit" is above the fastest rate, 400 Gbit/s)"},
      {"300.5bit", R"("300.5bit" is not a whole number of bits per second)"},
      {"1.0000001mbit", R"("1.0000001mbit" is not a whole number of bits per second)"},
      {"999999999999999999999bit", "this number has more than 20 digits"},
      {"", R"(this value is not a number with a unit such as "20mbit")"},
      {"fast", R"(this value is not a number with a unit such as "20mbit")"},
      {".5mbit", R"(this value is not a number with a unit such as "20mbit")"},
      {"5.mbit", R"("5.mbit" is not a number with a unit such as "20mbit")"},
      {"1.2.3mbit", R"("1.2.3mbit" has an unknown unit: the units are bit kbit mbit gbit tbit, or B/s kB/s MB/s GB/s)"},
      {"1e6bit", R"("1e6bit" has an unknown unit: the units are bit kbit mbit gbit tbit, or B/s kB/s MB/s GB/s)"},
      {"20mbit ", R"("20mbit " has an unknown unit: the units are bit kbit mbit gbit tbit, or B/s kB/s MB/s GB/s)"},
      {" 20mbit", R"(this value is not a number with a unit such as "20mbit")"},
      {"\x1b]0;x", R"(this value is not a number with a unit such as "20mbit")"},
  };
  for (const auto& [text, message] : refused) {
    const auto rate = parse_rate(text);
    ASSERT_FALSE(rate) << text;
    EXPECT_EQ(rate.error(), message);
  }
}

TEST(UnitsText, ReadsSizes) {
  const std::vector<std::pair<std::string, std::uint64_t>> sizes{
      {"1B", 1},        {"1514 B", 1514},      {"2kB", 2000},         {"2KiB", 2048},
      {"1.5KiB", 1536}, {"64MiB", 67'108'864}, {"1GB", 1'000'000'000}};
  for (const auto& [text, bytes] : sizes) {
    const auto size = parse_size(text);
    ASSERT_TRUE(size) << text << ": " << size.error();
    EXPECT_EQ(size->value, bytes) << text;
  }
  const std::vector<std::pair<std::string, std::string>> refused{
      {"3000", R"("3000" has no unit: write "3000B" (3000 bytes) or "3000kB" (3000000 bytes))"},
      {"30M", R"("30M" is ambiguous: write "30MB" (30000000 bytes) or "30MiB" (31457280 bytes))"},
      {"8KB", R"("8KB" is ambiguous: write "8kB" (8000 bytes) or "8KiB" (8192 bytes))"},
      {"8kb", R"("8kb" is ambiguous: write "8kB" (8000 bytes) or "8KiB" (8192 bytes))"},
      {"0B", R"("0B" is zero)"},
      {"-1B", R"("-1B" is negative)"},
      {"1.5B", R"("1.5B" is not a whole number of bytes)"},
      {"5ms", R"("5ms" has an unknown unit: the units are B kB KiB MB MiB GB GiB)"},
      {"5TB", R"("5TB" has an unknown unit: the units are B kB KiB MB MiB GB GiB)"},
      {"5000000000000GB", R"("5000000000000GB" is too large)"}};
  for (const auto& [text, message] : refused) {
    const auto size = parse_size(text);
    ASSERT_FALSE(size) << text;
    EXPECT_EQ(size.error(), message);
  }
}

TEST(UnitsText, ReadsTimes) {
  const std::vector<std::pair<std::string, Nanos>> times{{"1us", 1us},      {"4ms", 4ms},    {"2.5ms", 2500us},
                                                         {"250 ms", 250ms}, {"60s", 60s},    {"10m", 10min},
                                                         {"2h", 2h},        {"0.001us", 1ns}};
  for (const auto& [text, expected] : times) {
    const auto time = parse_time(text);
    ASSERT_TRUE(time) << text << ": " << time.error();
    EXPECT_EQ(*time, expected) << text;
  }
  const std::vector<std::pair<std::string, std::string>> refused{
      {"30", R"("30" has no unit: write "30ms" or "30s")"},
      {"0s", R"("0s" is zero)"},
      {"-1s", R"("-1s" is negative)"},
      {"0.0001us", R"("0.0001us" is not a whole number of nanoseconds)"},
      {"5M", R"("5M" has an unknown unit: the units are us ms s m h)"},
      {"1day", R"("1day" has an unknown unit: the units are us ms s m h)"},
      {"100001h", R"("100001h" is too large)"}};
  for (const auto& [text, message] : refused) {
    const auto time = parse_time(text);
    ASSERT_FALSE(time) << text;
    EXPECT_EQ(time.error(), message);
  }
}

TEST(UnitsText, WritesQuantities) {
  EXPECT_EQ(format_rate(DataRate{0}), "0 bit/s");
  EXPECT_EQ(format_rate(DataRate{300}), "300 bit/s");
  EXPECT_EQ(format_rate(DataRate{20'000'000}), "20 Mbit/s");
  EXPECT_EQ(format_rate(DataRate{4'294'000'000}), "4.294 Gbit/s");
  EXPECT_EQ(format_rate(DataRate{1'000'001}), "1.000001 Mbit/s");
  EXPECT_EQ(format_rate(DataRate{~std::uint64_t{0}}), "18446744.073709551615 Tbit/s");
  EXPECT_EQ(format_rate_both(DataRate{20'000'000}), "20 Mbit/s = 2.5 MB/s");
  EXPECT_EQ(format_rate_both(DataRate{300}), "300 bit/s = 37.5 B/s");
  EXPECT_EQ(format_rate_both(DataRate{301}), "301 bit/s = 37.625 B/s");
  EXPECT_EQ(format_rate_both(DataRate{400'000'000'000}), "400 Gbit/s = 50 GB/s");
  EXPECT_EQ(format_size(ByteCount{0}), "0 B");
  EXPECT_EQ(format_size(ByteCount{1514}), "1514 B");
  EXPECT_EQ(format_size(ByteCount{524'288}), "512 KiB");
  EXPECT_EQ(format_size(ByteCount{12'500'000}), "12500 kB");
  EXPECT_EQ(format_size(ByteCount{~std::uint64_t{0}}), "18446744073709551615 B");
  EXPECT_EQ(format_time(0ns), "0 s");
  EXPECT_EQ(format_time(1ns), "0.001 us");
  EXPECT_EQ(format_time(4ms), "4 ms");
  EXPECT_EQ(format_time(1500ms), "1.5 s");
  EXPECT_EQ(format_time(90s), "90 s");
  EXPECT_EQ(format_time(10min), "10 m");
  EXPECT_EQ(format_time(-20ms), "-20 ms");
  EXPECT_EQ(format_time(Nanos::min()), "-9223372036.854775808 s");
}

TEST(UnitsText, ReadsBackWhatItWrites) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto between = [&](std::uint64_t low, std::uint64_t high) {
    // Of all magnitudes alike: a random number of digits is kept.
    const std::uint64_t value = std::uniform_int_distribution<std::uint64_t>{low, high}(random);
    std::uint64_t shifted = value >> std::uniform_int_distribution<unsigned>{0, 40}(random);
    return shifted < low ? low : shifted;
  };
  for (int i = 0; i < 2000; ++i) {
    const DataRate rate{between(kSlowestRate.bits_per_second, kFastestRate.bits_per_second)};
    const std::string both = format_rate_both(rate);
    EXPECT_EQ(parse_rate(both.substr(0, both.find(" = "))), rate) << both;
    EXPECT_EQ(parse_rate(both.substr(both.find(" = ") + 3)), rate) << both;
    const ByteCount size{between(1, std::uint64_t{1} << 62)};
    EXPECT_EQ(parse_size(format_size(size)), size) << format_size(size);
    const Nanos time{static_cast<std::int64_t>(between(1, 360'000'000'000'000'000))};
    EXPECT_EQ(parse_time(format_time(time)), time) << format_time(time);
  }
}

TEST(AddressText, ReadsAndWritesAddresses) {
  const std::vector<std::pair<std::string, std::string>> prefixes{{"10.0.0.1", "10.0.0.1"},
                                                                  {"10.0.0.1/32", "10.0.0.1"},
                                                                  {"10.0.0.0/8", "10.0.0.0/8"},
                                                                  {"0.0.0.0/0", "0.0.0.0/0"},
                                                                  {"::/0", "::/0"},
                                                                  {"2001:DB8::/32", "2001:db8::/32"},
                                                                  {"2001:db8:0:0:0:0:0:1", "2001:db8::1"},
                                                                  {"fe80::1/128", "fe80::1"}};
  for (const auto& [text, written] : prefixes) {
    const auto prefix = parse_prefix(text);
    ASSERT_TRUE(prefix) << text;
    EXPECT_EQ(format_prefix(*prefix), written);
    EXPECT_EQ(parse_prefix(written), prefix);
  }
  for (const std::string text :
       {"", "/", "10.0.0.1/", "10.0.0.1/33", "10.0.0.1/-1", "10.0.0.1/+8", "10.0.0.1/08 ", "10.1", "010.0.0.1",
        "::1/129", "::g", "1.2.3.4.5", "10.0.0.1 ", "fe80::1%eth0", "host"}) {
    EXPECT_FALSE(parse_prefix(text)) << text;
  }
  EXPECT_FALSE(parse_prefix(std::string("10.0.0.1\0x", 10)));
  EXPECT_FALSE(parse_address("10.0.0.0/8"));
  EXPECT_EQ(format_address(Family::other, {}), "-");
}

TEST(AddressText, MasksAndContains) {
  const auto prefix = [](std::string_view text) { return *parse_prefix(text); };
  EXPECT_EQ(masked(prefix("10.255.255.255/12")), prefix("10.240.0.0/12"));
  EXPECT_EQ(masked(prefix("10.1.2.3/0")), prefix("0.0.0.0/0"));
  EXPECT_EQ(masked(prefix("10.1.2.3")), prefix("10.1.2.3"));
  EXPECT_EQ(masked(prefix("2001:db8:ffff::1/33")), prefix("2001:db8:8000::/33"));
  EXPECT_TRUE(contains(prefix("10.0.0.0/8"), prefix("10.1.0.0/16")));
  EXPECT_TRUE(contains(prefix("10.0.0.0/8"), prefix("10.0.0.0/8")));
  EXPECT_FALSE(contains(prefix("10.1.0.0/16"), prefix("10.0.0.0/8")));
  EXPECT_FALSE(contains(prefix("10.1.0.0/16"), prefix("10.2.0.1")));
  EXPECT_FALSE(contains(prefix("0.0.0.0/0"), prefix("::1")));
}

TEST(AddressText, NamesProtocols) {
  EXPECT_EQ(parse_protocol("tcp"), (std::vector<std::uint8_t>{kTcp}));
  EXPECT_EQ(parse_protocol("icmp"), (std::vector<std::uint8_t>{kIcmp, kIcmpv6}));
  EXPECT_EQ(parse_protocol("47"), (std::vector<std::uint8_t>{47}));
  EXPECT_TRUE(parse_protocol("256").empty());
  EXPECT_TRUE(parse_protocol("TCP").empty());
  EXPECT_TRUE(parse_protocol("").empty());
  EXPECT_EQ(protocol_name(kIcmp), "icmp");
  EXPECT_EQ(protocol_name(kIcmpv6), "icmp");
  EXPECT_EQ(protocol_name(253), "253");
  for (const std::string_view name : protocol_names()) {
    for (const std::uint8_t number : parse_protocol(name)) EXPECT_EQ(protocol_name(number), name);
  }
}

}  // namespace
}  // namespace shaper
