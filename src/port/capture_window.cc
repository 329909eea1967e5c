// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/capture_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace penstock::port {

namespace {

constexpr std::uint64_t kPieceBytes = 8 << 20;  // large enough that mapping it costs little
constexpr std::size_t kWindowBytes = 1 << 20;   // stays in the L2 cache
constexpr std::size_t kReadBytes = 256 << 10;

/// Maps all pages of these bytes, in order. A page fault also maps the pages around it that are in the page cache,
/// which takes less time than MAP_POPULATE, since that looks up each page once more.
void touch(std::span<const std::uint8_t> bytes) noexcept {
  constexpr std::size_t kMappedByAFault = 64 << 10;
  for (std::size_t at = 0; at < bytes.size(); at += kMappedByAFault) {
    static_cast<void>(*static_cast<const volatile std::uint8_t*>(bytes.data() + at));
  }
}

}  // namespace

MappedWindow::~MappedWindow() {
  unmap();
  ::close(fd_);
}

void MappedWindow::unmap() noexcept {
  if (pages_ != nullptr) ::munmap(pages_, end_ - begin_);
  pages_ = nullptr;
}

bool MappedWindow::map(std::size_t least) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  unmap();
  begin_ = at_ / page * page;
  end_ = std::min(size_, std::max(begin_ + kPieceBytes, at_ + least));
  if (begin_ == end_) return true;
  void* const pages = ::mmap(nullptr, end_ - begin_, PROT_READ, MAP_PRIVATE, fd_, static_cast<off_t>(begin_));
  if (pages == MAP_FAILED) {
    reason_ = std::strerror(errno);
    end_ = begin_;
    return false;
  }
  pages_ = static_cast<std::uint8_t*>(pages);
  touch({pages_, end_ - begin_});
  control_->bytes_read.store(end_, std::memory_order_relaxed);
  return true;
}

std::span<const std::uint8_t> MappedWindow::view(std::size_t least) noexcept {
  const bool is_mapped = at_ >= begin_ && (at_ + least <= end_ || (end_ == size_ && pages_ != nullptr));
  if (!is_mapped && !map(least)) return {};
  return {pages_ + (at_ - begin_), static_cast<std::size_t>(end_ - at_)};
}

BufferWindow::BufferWindow(std::unique_ptr<ByteSource> source) : source_(std::move(source)), buffer_(kWindowBytes) {}

std::span<const std::uint8_t> BufferWindow::view(std::size_t least) noexcept {
  if (end_ - begin_ < least) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < least) {
    const std::size_t room = std::min(buffer_.size() - end_, std::max(least - end_, kReadBytes));
    const std::ptrdiff_t got = source_->read({buffer_.data() + end_, room});
    if (got <= 0) break;
    end_ += static_cast<std::size_t>(got);
  }
  return {buffer_.data() + begin_, end_ - begin_};
}

}  // namespace penstock::port
