// Any numbers are taken for a reply of the script: they are read or refused in one sentence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shaper/cluster/lease_script.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::int64_t> reply(size / sizeof(std::int64_t));
  if (!reply.empty()) std::memcpy(reply.data(), data, reply.size() * sizeof(std::int64_t));
  const std::size_t asks = reply.size() / 10;
  const auto answers = shaper::read_lease_reply(reply, asks);
  if (answers ? answers->size() != asks : answers.error().empty()) std::abort();
  if (answers) {
    for (const shaper::LeaseAnswer& answer : *answers) {
      if (shaper::waiting_time(answer, answer.burst).count() < 0) std::abort();
    }
  }
  return 0;
}
