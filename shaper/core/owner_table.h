// The owners of flows, each once however many flows it has: an owner is there while a flow has it. What cgroups and
// containers have sent is kept longer, for metrics.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "shaper/core/owner.h"

namespace shaper {

class OwnerTable;

/// A flow's hold on its owner, or on none.
class OwnerRef {
 public:
  OwnerRef() = default;
  OwnerRef(OwnerRef&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  OwnerRef& operator=(OwnerRef&& other) noexcept {
    std::swap(entry_, other.entry_);
    return *this;
  }
  ~OwnerRef();

  [[nodiscard]] const Owner* get() const;

  /// The flow has sent something.
  void count(std::uint64_t packets, ByteCount wire_bytes) const;

 private:
  friend class OwnerTable;
  struct Sum {
    OwnerTotal total;
    std::size_t owners = 0;
  };
  struct Uses {
    OwnerTable* home = nullptr;
    Sum* sum = nullptr;
    std::size_t flows = 0;
  };
  using Entry = std::pair<const Owner, Uses>;

  explicit OwnerRef(Entry& entry) : entry_(&entry) { ++entry.second.flows; }

  Entry* entry_ = nullptr;
};

/// Must outlive its flows, and stay where it is.
class OwnerTable {
 public:
  OwnerTable() = default;
  OwnerTable(const OwnerTable&) = delete;
  OwnerTable& operator=(const OwnerTable&) = delete;

  [[nodiscard]] OwnerRef at(const Owner& owner) {
    const auto [found, is_new] = owners_.try_emplace(owner, OwnerRef::Uses{this});
    if (is_new) {
      found->second.sum = &sum_of(owner);
      ++found->second.sum->owners;
    }
    return OwnerRef(*found);
  }
  [[nodiscard]] std::size_t size() const { return owners_.size(); }

  [[nodiscard]] std::vector<OwnerTotal> totals() const;

  template <typename Image>
  void carry(Image& image);

 private:
  friend class OwnerRef;

  /// More cgroups and containers than these are counted as "other".
  static constexpr std::size_t kMostTotals = 256;

  using Place = std::pair<std::string, std::string>;  // cgroup, container
  [[nodiscard]] static Place place_of(const Owner& owner);
  [[nodiscard]] OwnerRef::Sum& sum_of(const Owner& owner);

  std::map<Owner, OwnerRef::Uses> owners_;
  std::map<Place, OwnerRef::Sum> sums_;
};

inline OwnerRef::~OwnerRef() {
  if (entry_ == nullptr || --entry_->second.flows > 0) return;
  --entry_->second.sum->owners;
  auto& owners = entry_->second.home->owners_;
  owners.erase(owners.find(entry_->first));  // by its place: the name goes with it
}

inline void OwnerRef::count(std::uint64_t packets, ByteCount wire_bytes) const {
  if (entry_ == nullptr) return;
  OwnerTotal& total = entry_->second.sum->total;
  total.sent_packets += packets;
  total.wire_bytes += wire_bytes;
}

inline const Owner* OwnerRef::get() const {
  return entry_ == nullptr ? nullptr : &entry_->first;
}

}  // namespace shaper
