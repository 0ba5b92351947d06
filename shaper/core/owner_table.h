// The owners of flows, each once however many flows it has: an owner is there while a flow has it.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

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

 private:
  friend class OwnerTable;
  struct Uses {
    OwnerTable* home = nullptr;
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
    return OwnerRef(*owners_.try_emplace(owner, OwnerRef::Uses{this, 0}).first);
  }
  [[nodiscard]] std::size_t size() const { return owners_.size(); }

 private:
  friend class OwnerRef;

  std::map<Owner, OwnerRef::Uses> owners_;
};

inline OwnerRef::~OwnerRef() {
  if (entry_ == nullptr || --entry_->second.flows > 0) return;
  auto& owners = entry_->second.home->owners_;
  owners.erase(owners.find(entry_->first));  // by its place: the name goes with it
}

inline const Owner* OwnerRef::get() const {
  return entry_ == nullptr ? nullptr : &entry_->first;
}

}  // namespace shaper
