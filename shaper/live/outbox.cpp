#include "shaper/live/outbox.h"

#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>
#include <new>
#include <utility>

namespace shaper {
namespace {

/// 64 pages, with the zero at the end of a string.
constexpr std::size_t kPiece = 256 * 1024 - 1;

/// A reader that is as fast as we are would otherwise keep us for the whole answer.
constexpr std::size_t kMostAtOnce = kPiece;

}  // namespace

void* map_pages(std::size_t bytes) {
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  return pages;
}

void unmap_pages(void* pages, std::size_t bytes) {
  ::munmap(pages, bytes);
}

void Outbox::add(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pieces_.empty() || pieces_.back().size() == kPiece) pieces_.emplace_back().reserve(kPiece);
    const std::string_view part = bytes.substr(0, kPiece - pieces_.back().size());
    pieces_.back() += part;
    bytes_ += part.size();
    bytes.remove_prefix(part.size());
  }
}

void Outbox::add_all(Outbox&& other) {
  if (other.sent_ > 0) other.pieces_.front().erase(0, std::exchange(other.sent_, 0));
  if (empty()) pieces_.clear();  // none but the last may be empty
  for (Piece& piece : other.pieces_) {
    if (!piece.empty()) pieces_.push_back(std::move(piece));
  }
  bytes_ += other.bytes_;
  other = {};
}

bool Outbox::send_to(int socket) {
  std::size_t taken = 0;
  while (!empty() && taken < kMostAtOnce) {
    Piece& first = pieces_.front();
    const ssize_t count = ::send(socket, first.data() + sent_, first.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return false;
    if (count <= 0) break;
    sent_ += static_cast<std::size_t>(count);
    taken += static_cast<std::size_t>(count);
    bytes_ -= static_cast<std::size_t>(count);
    if (sent_ < first.size()) continue;
    sent_ = 0;
    if (pieces_.size() > 1) {
      pieces_.pop_front();
    } else {
      first.clear();
    }
  }
  return true;
}

bool Outbox::drop_piece() {
  if (pieces_.empty()) return false;
  bytes_ -= pieces_.front().size() - sent_;
  sent_ = 0;
  pieces_.pop_front();
  return !pieces_.empty();
}

}  // namespace shaper
