// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/decompressor.h"

namespace penstock::port {

namespace {

/// The raw bytes of the file, with a look-ahead at the first ones.
class RawInput {
 public:
  RawInput(int fd, bool regular, const struct stat& status, ReadControl& control) noexcept
      : fd_(fd), regular_(regular), size_(static_cast<std::uint64_t>(status.st_size)), control_(&control) {}
  RawInput(RawInput&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        regular_(other.regular_),
        size_(other.size_),
        head_(other.head_),
        head_length_(other.head_length_),
        head_taken_(other.head_taken_),
        control_(other.control_),
        reason_(std::move(other.reason_)) {}
  RawInput& operator=(RawInput&&) = delete;
  ~RawInput() {
    if (fd_ >= 0) ::close(fd_);
  }

  /// The first bytes, at most 4. They are returned again by `read`.
  std::span<const std::uint8_t> peek() noexcept {
    while (head_length_ < head_.size()) {
      const auto got = read_fd(std::span(head_).subspan(head_length_));
      if (got <= 0) break;
      head_length_ += static_cast<std::size_t>(got);
    }
    return std::span(head_).first(head_length_);
  }

  std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept {
    if (head_taken_ < head_length_) {
      const std::size_t length = std::min(head_length_ - head_taken_, into.size());
      std::memcpy(into.data(), head_.data() + head_taken_, length);
      head_taken_ += length;
      return static_cast<std::ptrdiff_t>(length);
    }
    return read_fd(into);
  }

  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  [[nodiscard]] bool is_regular_file() const noexcept { return regular_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return regular_ ? size_ : 0; }

 private:
  std::ptrdiff_t read_fd(std::span<std::uint8_t> into) noexcept {
    if (!reason_.empty()) return -1;
    for (;;) {
      if (!regular_ && !wait()) return 0;
      const ssize_t got = ::read(fd_, into.data(), into.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (got < 0) {
        reason_ = std::strerror(errno);
        return -1;
      }
      control_->bytes_read.fetch_add(static_cast<std::uint64_t>(got), std::memory_order_relaxed);
      return got;
    }
  }

  /// False if reading should stop.
  bool wait() noexcept {
    std::array<pollfd, 2> ready{pollfd{fd_, POLLIN, 0}, pollfd{control_->stop_fd, POLLIN, 0}};
    while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
    }
    if (ready[1].revents == 0) return true;
    control_->stopped.store(true);
    return false;
  }

  int fd_;
  bool regular_;
  std::uint64_t size_;
  std::array<std::uint8_t, Decompressor::kMagicBytes> head_{};
  std::size_t head_length_ = 0;
  std::size_t head_taken_ = 0;
  ReadControl* control_;
  std::string reason_;
};

constexpr std::size_t kChunk = 256 << 10;

/// The common part of all sources.
class Source : public ByteSource {
 public:
  explicit Source(RawInput input) noexcept : input_(std::move(input)) {}
  const std::string& reason() const noexcept override { return reason_.empty() ? input_.reason() : reason_; }
  bool is_regular_file() const noexcept override { return input_.is_regular_file(); }
  std::uint64_t size_on_disk() const noexcept override { return input_.size(); }

 protected:
  RawInput input_;
  std::string reason_;
};

class PlainSource final : public Source {
 public:
  using Source::Source;
  std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept override { return input_.read(into); }
};

class CompressedSource final : public Source {
 public:
  CompressedSource(RawInput input, std::unique_ptr<Decompressor> decompressor)
      : Source(std::move(input)), decompressor_(std::move(decompressor)), buffer_(kChunk) {}

  std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept override {
    while (reason_.empty()) {
      // The decompressor may have output left although it has consumed all input.
      const std::ptrdiff_t wrote = decompressor_->decompress(compressed_, into);
      if (wrote > 0) return wrote;
      if (wrote < 0) {
        reason_ = decompressor_->reason();
        return -1;
      }
      const std::ptrdiff_t got = input_.read(buffer_);
      if (got < 0) return -1;
      if (got == 0) {
        if (!decompressor_->inside_stream()) return 0;
        reason_ = "the compressed data is truncated";
        return -1;
      }
      compressed_ = std::span(buffer_).first(static_cast<std::size_t>(got));
    }
    return -1;
  }

 private:
  std::unique_ptr<Decompressor> decompressor_;
  std::vector<std::uint8_t> buffer_;
  std::span<const std::uint8_t> compressed_;  // the part of `buffer_` that is not yet consumed
};

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path, ReadControl& control) {
  const int fd = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failure(system_error(path, "cannot open", std::strerror(errno)));
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    const int reason = S_ISDIR(status.st_mode) ? EISDIR : errno;
    ::close(fd);
    return failure(system_error(path, "cannot read", std::strerror(reason)));
  }
  RawInput input(fd, S_ISREG(status.st_mode) && path != "-", status, control);
  const auto magic = input.peek();
  if (!input.reason().empty()) return failure(system_error(path, "cannot read", input.reason()));
  if (auto decompressor = Decompressor::for_input(magic)) {
    return std::make_unique<CompressedSource>(std::move(input), std::move(decompressor));
  }
  return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace penstock::port
