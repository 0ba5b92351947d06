#include "shaper/replay/capture.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "shaper/replay/frame.h"

namespace shaper {
namespace {

tl::unexpected<std::string> failure(const std::string& path, std::string_view what) {
  return tl::unexpected(fmt::format("{}: {}", path, what));
}

/// Seconds as an unsigned 32-bit number, as pcap files have them until 2106; more is a damaged time stamp.
constexpr std::int64_t kLastSecond = 0xffffffff;
constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

/// A time stamp (tv_usec holds nanoseconds here) that no file can bring out of range.
Nanos time_of(const timeval& stamp) {
  const std::int64_t seconds = std::clamp<std::int64_t>(stamp.tv_sec, 0, kLastSecond);
  return Nanos{seconds * kNanosPerSecond + std::clamp<std::int64_t>(stamp.tv_usec, 0, kNanosPerSecond - 1)};
}

}  // namespace

void Capture::Close::operator()(pcap* handle) const {
  pcap_close(handle);
}

Capture::Capture(std::unique_ptr<pcap, Close> handle, std::string path)
    : handle_(std::move(handle)), path_(std::move(path)), link_type_(pcap_datalink(handle_.get())) {
  struct stat status {};
  if (fstat(fileno(pcap_file(handle_.get())), &status) == 0 && S_ISREG(status.st_mode)) file_bytes_ = status.st_size;
}

tl::expected<Capture, std::string> Capture::read(InputFile file, const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  std::unique_ptr<pcap, Close> handle(
      pcap_fopen_offline_with_tstamp_precision(file.get(), PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (handle == nullptr) return failure(path, fmt::format("not a capture that can be read ({})", error.data()));
  static_cast<void>(file.release());  // pcap_close() closes it
  const int link_type = pcap_datalink(handle.get());
  if (!is_known_link_type(link_type)) {
    const char* name = pcap_datalink_val_to_name(link_type);
    return failure(path, fmt::format("frames of the link type {} cannot be read; capture on an Ethernet interface, "
                                     "or on any",
                                     name != nullptr ? name : std::to_string(link_type)));
  }
  return Capture(std::move(handle), path);
}

tl::expected<std::optional<Capture::Frame>, std::string> Capture::next() {
  pcap_pkthdr* header = nullptr;
  const std::uint8_t* bytes = nullptr;
  const int result = pcap_next_ex(handle_.get(), &header, &bytes);
  if (result == 1) {
    return Frame{++frames_, time_of(header->ts), {bytes, header->caplen}, std::max(header->len, header->caplen)};
  }
  cut_short_ = result != PCAP_ERROR_BREAK && std::feof(pcap_file(handle_.get())) != 0;
  if (result == PCAP_ERROR_BREAK || cut_short_) return std::optional<Frame>();
  const std::string_view reason = pcap_geterr(handle_.get());
  // libpcap's word where the interfaces of a pcapng file are not of one kind.
  const bool mixed = reason.find("different from the") != std::string_view::npos;
  return failure(path_, fmt::format("cannot be read behind packet {} ({}){}", frames_, reason,
                                    mixed ? "; capture one interface, or any" : ""));
}

std::optional<int> Capture::percent() const {
  if (file_bytes_ == 0) return std::nullopt;
  const std::int64_t position = std::ftell(pcap_file(handle_.get()));
  return static_cast<int>(std::clamp<std::int64_t>(position, 0, file_bytes_) * 100 / file_bytes_);
}

}  // namespace shaper
