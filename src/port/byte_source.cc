// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace penstock::port {

namespace {

/// The file's own bytes, with its first ones looked at beforehand.
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

  /// The first bytes, at most 4; they are read again.
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

  /// False where reading shall stop.
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
  std::array<std::uint8_t, 4> head_{};
  std::size_t head_length_ = 0;
  std::size_t head_taken_ = 0;
  ReadControl* control_;
  std::string reason_;
};

constexpr std::size_t kChunk = 256 << 10;

/// What all kinds of sources have in common.
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

/// The frame of both decompressors: `decompress` takes from `compressed_` and returns what it wrote, or -1.
class DecompressingSource : public Source {
 public:
  explicit DecompressingSource(RawInput input) : Source(std::move(input)), buffer_(kChunk) {}

  std::ptrdiff_t read(std::span<std::uint8_t> into) noexcept override {
    while (reason_.empty()) {
      // Output may be left inside the decompressor although all input is taken.
      const std::ptrdiff_t wrote = decompress(into);
      if (wrote != 0) return wrote;
      const std::ptrdiff_t got = input_.read(buffer_);
      if (got < 0) return -1;
      if (got == 0) {
        if (inside_stream_) reason_ = "the compressed data ends early";
        return inside_stream_ ? -1 : 0;
      }
      compressed_ = std::span(buffer_).first(static_cast<std::size_t>(got));
    }
    return -1;
  }

 protected:
  virtual std::ptrdiff_t decompress(std::span<std::uint8_t> into) noexcept = 0;

  std::span<const std::uint8_t> compressed_;  // what is not yet taken of `buffer_`
  bool inside_stream_ = true;                 // its end has not been seen

 private:
  std::vector<std::uint8_t> buffer_;
};

class GzipSource final : public DecompressingSource {
 public:
  explicit GzipSource(RawInput input) : DecompressingSource(std::move(input)) {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) reason_ = "no memory for zlib";
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

 private:
  std::ptrdiff_t decompress(std::span<std::uint8_t> into) noexcept override {
    stream_.next_out = into.data();
    stream_.avail_out = static_cast<uInt>(into.size());
    while (stream_.avail_out == into.size()) {
      if (!inside_stream_) {
        // Zero bytes may pad the end (gzip(1)); anything else begins the next stream.
        while (!compressed_.empty() && compressed_.front() == 0) compressed_ = compressed_.subspan(1);
        if (compressed_.empty()) return 0;
        inflateReset(&stream_);
        inside_stream_ = true;
      }
      stream_.next_in = const_cast<Bytef*>(compressed_.data());
      stream_.avail_in = static_cast<uInt>(compressed_.size());
      const int status = inflate(&stream_, Z_NO_FLUSH);
      compressed_ = compressed_.last(stream_.avail_in);
      if (status == Z_STREAM_END) {
        inside_stream_ = false;
      } else if (status == Z_BUF_ERROR) {
        break;
      } else if (status != Z_OK) {
        reason_ = std::string("gzip: ") + (stream_.msg != nullptr ? stream_.msg : zError(status));
        break;
      }
    }
    const std::size_t wrote = into.size() - stream_.avail_out;
    return wrote != 0 || reason_.empty() ? static_cast<std::ptrdiff_t>(wrote) : -1;
  }

  z_stream stream_{};
};

class ZstdSource final : public DecompressingSource {
 public:
  explicit ZstdSource(RawInput input) : DecompressingSource(std::move(input)), stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) reason_ = "no memory for zstd";
  }

 private:
  std::ptrdiff_t decompress(std::span<std::uint8_t> into) noexcept override {
    ZSTD_outBuffer out{into.data(), into.size(), 0};
    for (;;) {
      ZSTD_inBuffer in{compressed_.data(), compressed_.size(), 0};
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
      compressed_ = compressed_.subspan(in.pos);
      if (ZSTD_isError(status) != 0) {
        reason_ = std::string("zstd: ") + ZSTD_getErrorName(status);
        return out.pos != 0 ? static_cast<std::ptrdiff_t>(out.pos) : -1;
      }
      // 0: a frame is complete. Without input and output the answer is about a frame that has not begun.
      if (in.pos != 0 || out.pos != 0) inside_stream_ = status != 0;
      if (out.pos != 0 || in.pos == 0) return static_cast<std::ptrdiff_t>(out.pos);
    }
  }

  struct Free {
    void operator()(ZSTD_DStream* stream) const noexcept { ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
};

bool begins_with(std::span<const std::uint8_t> bytes, std::initializer_list<std::uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

}  // namespace

Result<std::unique_ptr<ByteSource>> ByteSource::open(const std::string& path, ReadControl& control) {
  const int fd = path == "-" ? ::dup(STDIN_FILENO) : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return failure({{path, 0, 0}, "cannot open", std::strerror(errno), "a file"});
  struct stat status {};
  if (::fstat(fd, &status) != 0 || S_ISDIR(status.st_mode)) {
    const int reason = S_ISDIR(status.st_mode) ? EISDIR : errno;
    ::close(fd);
    return failure({{path, 0, 0}, "cannot read", std::strerror(reason), "a file"});
  }
  RawInput input(fd, S_ISREG(status.st_mode) && path != "-", status, control);
  const auto magic = input.peek();
  if (!input.reason().empty()) return failure({{path, 0, 0}, "cannot read", input.reason(), "a file"});
  if (begins_with(magic, {0x1f, 0x8b})) return std::make_unique<GzipSource>(std::move(input));
  const bool zstd_skippable = magic.size() == 4 && (magic[0] & 0xf0) == 0x50 &&
                              begins_with(magic.subspan(1), {0x2a, 0x4d, 0x18});  // RFC 8878 §3.1.2
  if (begins_with(magic, {0x28, 0xb5, 0x2f, 0xfd}) || zstd_skippable) {
    return std::make_unique<ZstdSource>(std::move(input));
  }
  return std::make_unique<PlainSource>(std::move(input));
}

}  // namespace penstock::port
