// Any bytes are what the kernel, an engine or the process that finds owners says. Answers that were read are read the
// same when they are written again; an id of a container stands in the path.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "shaper/live/cgroup_tree.h"
#include "shaper/live/container_names.h"
#include "shaper/live/containers.h"
#include "shaper/live/owner_messages.h"
#include "shaper/live/process_facts.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shaper;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto answers = parse_owner_answers(text);
  if (parse_owner_answers(owner_answers_text(answers)) != answers) std::abort();
  const auto asks = parse_owner_asks(text);
  if (parse_owner_asks(owner_asks_text(asks)) != asks) std::abort();
  const std::string id = container_of(text);
  if (!id.empty() && (id.size() != 64 || text.find(id) == std::string_view::npos)) std::abort();
  (void)parse_container_names(text);
  (void)local_addresses(text, text);
  (void)parse_process_stat(text);
  (void)cgroup2_mount(text);
  return 0;
}
