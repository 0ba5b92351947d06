#include "shaper/replay/capture.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

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
  if (fstat(fileno(pcap_file(handle_.get())), &status) == 0) file_bytes_ = status.st_size;
}

tl::expected<Capture, std::string> Capture::open(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return failure(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return failure(path, "not a regular file; give a capture written by tcpdump -w");
  if (status.st_size == 0) return failure(path, "the file is empty; give a capture written by tcpdump -w");
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  if (file == nullptr) return failure(path, std::strerror(errno));
  return read(file, path);
}

tl::expected<Capture, std::string> Capture::read(std::FILE* file, const std::string& path) {
  std::array<char, PCAP_ERRBUF_SIZE> error{};
  std::unique_ptr<pcap, Close> handle(
      pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, error.data()));
  if (handle == nullptr) {
    std::fclose(file);
    return failure(path, fmt::format("not a capture that can be read ({})", error.data()));
  }
  const int link_type = pcap_datalink(handle.get());
  if (!is_known_link_type(link_type)) {
    const char* name = pcap_datalink_val_to_name(link_type);
    return failure(path, fmt::format("frames of the link type {} cannot be read; capture on an Ethernet interface, "
                                     "or on any",
                                     name != nullptr ? name : std::to_string(link_type)));
  }
  return Capture(std::move(handle), path);
}

tl::expected<std::optional<Capture::Item>, std::string> Capture::next() {
  for (;;) {
    pcap_pkthdr* header = nullptr;
    const std::uint8_t* bytes = nullptr;
    const int result = pcap_next_ex(handle_.get(), &header, &bytes);
    if (result == PCAP_ERROR_BREAK) return std::optional<Item>();
    if (result != 1) {
      return failure(path_, fmt::format("damaged behind frame {} ({})", frames_, pcap_geterr(handle_.get())));
    }
    ++frames_;
    const auto ip = find_ip_packet(link_type_, {bytes, header->caplen}, std::max(header->len, header->caplen));
    if (ip) return Item{time_of(header->ts), *ip};
    ++other_frames_;
  }
}

int Capture::percent() const {
  const std::int64_t position = std::ftell(pcap_file(handle_.get()));
  return file_bytes_ > 0 ? static_cast<int>(std::clamp<std::int64_t>(position, 0, file_bytes_) * 100 / file_bytes_) : 0;
}

}  // namespace shaper
