#include "shaper/web/host_names.h"

#include <algorithm>
#include <cctype>

#include "shaper/model/address_text.h"

namespace shaper {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

bool is_name(std::string_view text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_'; };
  return !text.empty() && std::ranges::all_of(text, fits);
}

/// One address has one spelling.
std::string spelled(std::string_view text) {
  const auto address = parse_address(text);
  return address ? format_address(address->first, address->second) : lower_case(text);
}

}  // namespace

std::optional<std::string> host_in_header(std::string_view header) {
  const bool brackets = header.starts_with('[');
  const std::size_t end = brackets ? header.find(']') : std::min(header.find(':'), header.size());
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view port = header.substr(brackets ? end + 1 : end);
  if (!port.empty() && (port.front() != ':' || !parse_number<std::uint16_t>(port.substr(1)))) return std::nullopt;
  const std::string_view host = brackets ? header.substr(1, end - 1) : header.substr(0, end);
  const bool good = brackets ? parse_address(host).has_value() : is_name(host);
  return good ? std::optional{spelled(host)} : std::nullopt;
}

HostNames::HostNames(const EndPoint& listen, const std::vector<std::string>& names)
    : names_{"localhost", "127.0.0.1", "::1", format_address(listen.family, listen.address)},
      any_address_(listen.address == Address{}) {
  for (const std::string& name : names) names_.push_back(spelled(name));
}

bool HostNames::allow(std::string_view header) const {
  const auto host = host_in_header(header);
  if (!host) return false;
  return (any_address_ && parse_address(*host)) || std::ranges::find(names_, *host) != names_.end();
}

}  // namespace shaper
