#include "shaper/model/event_names.h"

#include <algorithm>
#include <utility>

namespace shaper {
namespace {

using Kind = event::Name::Kind;
using LookUp = std::function<std::optional<std::uint32_t>(const std::string&)>;

LookUp recording(LookUp look_up, Kind kind, std::vector<event::Name>& recorded) {
  if (!look_up) return look_up;
  return [look_up = std::move(look_up), kind, &recorded](const std::string& name) {
    const std::optional<std::uint32_t> number = look_up(name);
    if (number) recorded.push_back({kind, name, *number});
    return number;
  };
}

std::optional<std::uint32_t> find(const std::vector<event::Name>& recorded, Kind kind, const std::string& name) {
  const auto found = std::find_if(recorded.rbegin(), recorded.rend(),
                                  [&](const event::Name& each) { return each.kind == kind && each.name == name; });
  return found == recorded.rend() ? std::nullopt : std::optional(found->number);
}

}  // namespace

NameLookup recording_lookup(NameLookup names, std::vector<event::Name>& recorded) {
  return {recording(std::move(names.user), Kind::user, recorded),
          recording(std::move(names.group), Kind::group, recorded)};
}

NameLookup recorded_lookup(const std::vector<event::Name>& recorded) {
  return {[recorded](const std::string& name) { return find(recorded, Kind::user, name); },
          [recorded](const std::string& name) { return find(recorded, Kind::group, name); }};
}

}  // namespace shaper
