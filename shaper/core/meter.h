// A bucket on the way of packets: its credit, what of it is promised to packets that are about to leave, and what was
// charged for packets that may not have left yet.
//
// A bucket earns at its rate, or, for a limit over many hosts, spends grants that others give it.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "shaper/core/token_bucket.h"

namespace shaper {

/// Grants that were not spent yet. A packet larger than every grant since the last departure passes for the largest of
/// them; what it lacks is a debt that later grants pay first, so the mean is kept.
struct Wallet {
  BucketSpec pace;  ///< grants leave no faster than this
  ByteCount left;
  ByteCount debt;
  ByteCount largest;  ///< grant since the latest departure
  std::optional<Instant> valid_until;
  ByteCount arrived;  ///< wire bytes since it exists
  ByteCount spent;
  ByteCount held;
  bool refuses = false;  ///< nothing passes, and nothing waits

  void grant(ByteCount bytes, Instant until) {
    largest = std::max(largest, bytes);
    const ByteCount paid = std::min(debt, bytes);
    debt -= paid;
    left += bytes - paid;
    valid_until = until;
  }
  void expire(Instant now) {
    if (valid_until && now >= *valid_until) left = largest = {};
  }
  [[nodiscard]] ByteCount left_at(Instant now) const { return valid_until && now >= *valid_until ? ByteCount{} : left; }
  [[nodiscard]] bool covers(ByteCount length) const {
    return left.value > 0 && left >= std::min(length, largest.value > 0 ? largest : length);
  }
  void charge(ByteCount length) {
    const ByteCount paid = std::min(left, length);
    left -= paid;
    debt += length - paid;
    spent += length;
    largest = {};
  }
};

/// How late a wake-up may be without loss of pace.
inline constexpr Nanos kGrantSlack = std::chrono::milliseconds{1};

class Meter {
 public:
  /// `late` counts the nanobits that got lost while somebody waited for them.
  Meter(const BucketSpec& spec, TokenBucket bucket, Uint128& late) : spec_(&spec), bucket_(bucket), late_(&late) {}

  /// The heir of `before`: its credit up to the depth of `spec`, or its grants.
  Meter(const BucketSpec& spec, Uint128& late, Meter&& before, Instant now)
      : spec_(&spec), bucket_(before.bucket_), late_(&late), wallet_(std::move(before.wallet_)) {
    if (wallet_) {
      spec_ = &wallet_->pace;
      wallet_->held = {};  // counted again with the packets
    } else {
      bucket_.change(*before.spec_, spec, now);
    }
  }

  /// Between packets, when what was charged has left.
  template <typename Image>
  void carry(Image& image);

  /// Spends grants from now on.
  void use_grants(ByteCount frame, Instant now) {
    wallet_ = std::make_unique<Wallet>();
    wallet_->pace = {kSlowestRate, frame, {}};
    spec_ = &wallet_->pace;
    bucket_ = TokenBucket::full(*spec_, now);
  }
  /// Nothing for a bucket that earns.
  [[nodiscard]] const Wallet* wallet() const { return wallet_.get(); }
  void grant(ByteCount bytes, Instant valid_until, DataRate pace) {
    wallet_->grant(bytes, valid_until);
    wallet_->pace.rate = pace;
    wallet_->pace.burst = bytes_in(pace, kGrantSlack);
  }
  /// What is promised to packets that are about to leave stays.
  [[nodiscard]] ByteCount take_back(ByteCount bytes) {
    const ByteCount free = wallet_->left > reserved_ ? wallet_->left - reserved_ : ByteCount{};
    const ByteCount taken = std::min(bytes, free);
    wallet_->left -= taken;
    return taken;
  }

  /// Goes on with a wallet that had this credit at its pace.
  void set_wallet(const Wallet& wallet, std::uint64_t credit_nanobits, Instant now) {
    *wallet_ = wallet;
    bucket_ = TokenBucket::with_credit(credit_nanobits, now);
  }

  void refuse(bool on) { wallet_->refuses = on; }
  [[nodiscard]] bool refuses() const { return wallet_ && wallet_->refuses; }

  /// A packet of `length` wire bytes came that will have to pass.
  void arrived(ByteCount length) {
    if (!wallet_) return;
    wallet_->pace.admit(length);
    wallet_->arrived += length;
  }
  void hold(ByteCount length) {
    if (wallet_) wallet_->held += length;
  }
  void let_go(ByteCount length) {
    if (wallet_) wallet_->held -= length;
  }

  /// Brings the credit up to `now`.
  void accrue(Instant now) {
    const std::uint64_t lost = bucket_.accrue(*spec_, now);
    if (waited_ && !wallet_) *late_ += lost;
    if (wallet_) wallet_->expire(now);
  }

  /// Whether the credit covers `length`, as of the last accrue().
  [[nodiscard]] bool covers(ByteCount length) const {
    return bucket_.covers(length) && (!wallet_ || wallet_->covers(length));
  }

  /// The same beside what is promised to others.
  [[nodiscard]] bool has_free(ByteCount length) const { return covers(reserved_ + length); }

  /// A bucket that is too small for a packet and what is promised does not wait for those who hold the promise: a slow
  /// link may hold them up.
  [[nodiscard]] bool has_too_little_room(ByteCount length) const { return reserved_ + length > spec_->depth(); }

  /// When the credit alone covers `length`; absent: not before another grant.
  [[nodiscard]] std::optional<Instant> ready_at(ByteCount length) const {
    if (wallet_ && !wallet_->covers(length)) return std::nullopt;
    return bucket_.covered_at(*spec_, length);
  }

  /// When it does so beside what is promised, where there is room for both.
  [[nodiscard]] std::optional<Instant> free_at(ByteCount length) const {
    return ready_at(has_too_little_room(length) ? length : reserved_ + length);
  }

  void reserve(ByteCount length) { reserved_ += length; }
  void release(ByteCount length) { reserved_ -= length; }
  [[nodiscard]] ByteCount reserved() const { return reserved_; }

  /// True if this is the first charge since the last departed().
  bool charge(ByteCount length) {
    const bool first = spent_ == ByteCount{};
    bucket_.charge(length);
    spent_ += length;
    if (wallet_) wallet_->charge(length);
    return first;
  }

  /// What has left already by another way is charged here too. Grants pay for what leaves by theirs.
  void owe(ByteCount length, Instant now) {
    if (wallet_) return;
    accrue(now);
    bucket_.owe(*spec_, length);
  }

  /// What was charged so far has left by `at`.
  void departed(Instant at) {
    const std::uint64_t lost = bucket_.departed(*spec_, spent_, at);
    if (waited_ && !wallet_) *late_ += lost;
    spent_ = {};
  }
  [[nodiscard]] bool has_spent() const { return spent_ != ByteCount{}; }

  /// Whether credit that gets lost from now on is lost because we are late.
  void set_waited(bool waited) { waited_ = waited; }

  /// Its spec was `before` until now: credit stays, up to the new depth.
  void follow(const BucketSpec& before, Instant now) {
    if (!wallet_) bucket_.change(before, *spec_, now);
  }

  [[nodiscard]] const TokenBucket& bucket() const { return bucket_; }
  /// Whether a new one instead of it gives nothing away.
  [[nodiscard]] bool may_forget(Instant now) const { return wallet_ || bucket_.full_at(*spec_, now); }
  [[nodiscard]] ByteCount credit_at(Instant now) const { return bucket_at(now).credit(); }
  [[nodiscard]] TokenBucket bucket_at(Instant now) const {
    TokenBucket bucket = bucket_;
    bucket.accrue(*spec_, now);
    return bucket;
  }

 private:
  const BucketSpec* spec_;
  TokenBucket bucket_;
  ByteCount reserved_;
  ByteCount spent_;
  Uint128* late_;
  bool waited_ = false;
  std::unique_ptr<Wallet> wallet_;
};

}  // namespace shaper
