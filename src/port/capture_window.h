// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A window onto the bytes of a file or pipe that moves forward, for readers that parse bytes in place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "port/byte_source.h"

namespace penstock::port {

class CaptureWindow {
 public:
  static constexpr std::size_t kMostViewed = 512 << 10;

  virtual ~CaptureWindow() = default;

  /// The bytes from the current position on: at least `least` (at most kMostViewed), or fewer if the input ends or a
  /// read fails, and more if they are there. Valid until the next call.
  [[nodiscard]] virtual std::span<const std::uint8_t> view(std::size_t least) noexcept = 0;
  /// Moves the current position forward, by at most the size of the last view.
  virtual void advance(std::size_t bytes) noexcept = 0;
  /// Why the input could not be read; empty if it could.
  [[nodiscard]] virtual const std::string& reason() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size_on_disk() const noexcept = 0;
  [[nodiscard]] virtual bool is_live() const noexcept = 0;
  /// Whether the bytes of a view have just been written to the cache.
  [[nodiscard]] virtual bool is_in_cache() const noexcept = 0;
};

/// The pages of a regular file, mapped piece by piece. If the file is truncated or a page cannot be read meanwhile, the
/// process gets SIGBUS.
class MappedWindow final : public CaptureWindow {
 public:
  /// Takes ownership of the descriptor.
  MappedWindow(int fd, std::uint64_t size, ReadControl& control) noexcept : fd_(fd), size_(size), control_(&control) {}
  MappedWindow(const MappedWindow&) = delete;
  MappedWindow& operator=(const MappedWindow&) = delete;
  ~MappedWindow() override;

  std::span<const std::uint8_t> view(std::size_t least) noexcept override;
  void advance(std::size_t bytes) noexcept override { at_ += bytes; }
  const std::string& reason() const noexcept override { return reason_; }
  std::uint64_t size_on_disk() const noexcept override { return size_; }
  bool is_live() const noexcept override { return false; }
  bool is_in_cache() const noexcept override { return false; }

 private:
  void unmap() noexcept;
  bool map(std::size_t least) noexcept;

  int fd_;
  std::uint64_t size_;
  ReadControl* control_;
  std::uint64_t at_ = 0;
  std::uint8_t* pages_ = nullptr;  // the file from `begin_` to `end_`
  std::uint64_t begin_ = 0, end_ = 0;
  std::string reason_;
};

/// A buffer that is filled from a byte source.
class BufferWindow final : public CaptureWindow {
 public:
  explicit BufferWindow(std::unique_ptr<ByteSource> source);

  std::span<const std::uint8_t> view(std::size_t least) noexcept override;
  void advance(std::size_t bytes) noexcept override { begin_ += bytes; }
  const std::string& reason() const noexcept override { return source_->reason(); }
  std::uint64_t size_on_disk() const noexcept override { return source_->size_on_disk(); }
  bool is_live() const noexcept override { return !source_->is_regular_file(); }
  bool is_in_cache() const noexcept override { return true; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace penstock::port
