#include "shaper/live/container_names.h"

#include <nlohmann/json.hpp>

#include "shaper/live/engine_socket.h"
#include "shaper/live/folder.h"

namespace shaper {
namespace {

constexpr std::chrono::milliseconds kPatience{200};
constexpr std::chrono::seconds kNameHolds{30};  // it can be changed
constexpr std::chrono::seconds kNoNameHolds{2};
constexpr std::size_t kLongestList = 8 * 1024 * 1024;
constexpr const char* kQuestion = "/containers/json?all=true";

/// The first of both keys that is there, if it is an array of strings, or a string.
std::string text_at(const nlohmann::json& object, const char* key, const char* other_key) {
  const auto found = object.contains(key) ? object.find(key) : object.find(other_key);
  if (found == object.end()) return "";
  const nlohmann::json& value = found->is_array() && !found->empty() ? found->front() : *found;
  return value.is_string() ? value.get<std::string>() : "";
}

}  // namespace

std::map<std::string, std::string> parse_container_names(std::string_view json) {
  std::map<std::string, std::string> names;
  const auto list = nlohmann::json::parse(json, nullptr, false);
  if (!list.is_array()) return names;
  for (const auto& entry : list) {
    if (!entry.is_object()) continue;
    const std::string id = text_at(entry, "id", "Id");
    std::string name = text_at(entry, "names", "Names");
    if (name.starts_with('/')) name.erase(0, 1);  // docker
    if (!id.empty() && !name.empty()) names.emplace(id, name);
  }
  return names;
}

std::optional<std::string> ContainerNames::find(const std::string& id) const {
  const Nanos age = monotonic_now() - learnt_;
  const auto name = names_.find(id);
  if (name != names_.end() && age < kNameHolds) return name->second;
  if (unnamed_.contains(id) && age < kNoNameHolds) return "";
  return std::nullopt;
}

void ContainerNames::learn(const std::set<std::string>& wanted) {
  const Instant start = monotonic_now();
  std::map<std::string, std::string> names;
  for (const std::string& list : sources_.lists) {
    names.merge(parse_container_names(read_text(AT_FDCWD, list.c_str(), kLongestList)));
  }
  for (const std::string& engine : sources_.engines) {
    names.merge(parse_container_names(ask_engine(engine, kQuestion, kPatience)));
  }
  names_ = std::move(names);
  std::erase_if(unnamed_, [&](const std::string& id) { return names_.contains(id); });
  if (start - learnt_ > kNoNameHolds) unnamed_.clear();
  for (const std::string& id : wanted) {
    if (!names_.contains(id)) unnamed_.insert(id);
  }
  learnt_ = monotonic_now();
  pace_.over(learnt_, learnt_ - start);
}

}  // namespace shaper
