// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace penstock::port {

namespace {

// The workers wait for the compressor.
constexpr int kGzipLevel = 1;
constexpr int kZstdLevel = 3;
constexpr std::size_t kChunk = 256 << 10;

class PlainSink : public ByteSink {
 public:
  explicit PlainSink(int fd) noexcept : fd_(fd) {}
  PlainSink(const PlainSink&) = delete;
  PlainSink& operator=(const PlainSink&) = delete;
  ~PlainSink() override {
    if (fd_ >= 0) ::close(fd_);
  }

  bool write(std::span<const std::uint8_t> bytes) noexcept override { return write_fd(bytes); }
  bool finish() noexcept override { return close_fd(); }
  const std::string& reason() const noexcept override { return reason_; }

 protected:
  bool write_fd(std::span<const std::uint8_t> bytes) noexcept {
    while (!bytes.empty() && reason_.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data(), bytes.size());
      if (wrote >= 0) {
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
      } else if (errno != EINTR) {
        reason_ = std::strerror(errno);
      }
    }
    return reason_.empty();
  }

  bool close_fd() noexcept {
    // Some file systems tell of a full disk only here.
    if (::close(fd_) != 0 && reason_.empty()) reason_ = std::strerror(errno);
    fd_ = -1;
    return reason_.empty();
  }

  std::string reason_;

 private:
  int fd_;
};

class GzipSink final : public PlainSink {
 public:
  explicit GzipSink(int fd) : PlainSink(fd), out_(kChunk) {
    constexpr int kGzipFormat = 16;
    constexpr int kMemoryLevel = 9;
    if (deflateInit2(&stream_, kGzipLevel, Z_DEFLATED, kGzipFormat + MAX_WBITS, kMemoryLevel, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
      reason_ = "no memory for zlib";
    }
  }
  GzipSink(const GzipSink&) = delete;
  GzipSink& operator=(const GzipSink&) = delete;
  ~GzipSink() override { deflateEnd(&stream_); }

  bool write(std::span<const std::uint8_t> bytes) noexcept override { return compress(bytes, Z_NO_FLUSH); }
  bool finish() noexcept override {
    compress({}, Z_FINISH);
    return close_fd();
  }

 private:
  bool compress(std::span<const std::uint8_t> bytes, int flush) noexcept {
    stream_.next_in = const_cast<Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      if (!reason_.empty()) return false;
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, flush);
      write_fd(std::span(out_).first(out_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
    return reason_.empty();
  }

  z_stream stream_{};
  std::vector<std::uint8_t> out_;
};

class ZstdSink final : public PlainSink {
 public:
  explicit ZstdSink(int fd) : PlainSink(fd), stream_(ZSTD_createCCtx()), out_(kChunk) {
    if (stream_ == nullptr) reason_ = "no memory for zstd";
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1);
  }

  bool write(std::span<const std::uint8_t> bytes) noexcept override { return compress(bytes, ZSTD_e_continue); }
  bool finish() noexcept override {
    compress({}, ZSTD_e_end);
    return close_fd();
  }

 private:
  bool compress(std::span<const std::uint8_t> bytes, ZSTD_EndDirective mode) noexcept {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t left = 0;
    do {
      if (!reason_.empty()) return false;
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      left = ZSTD_compressStream2(stream_.get(), &out, &in, mode);
      if (ZSTD_isError(left) != 0) {
        reason_ = ZSTD_getErrorName(left);
        return false;
      }
      write_fd(std::span(out_).first(out.pos));
    } while (mode == ZSTD_e_end ? left != 0 : in.pos != in.size);
    return reason_.empty();
  }

  struct Free {
    void operator()(ZSTD_CCtx* stream) const noexcept { ZSTD_freeCCtx(stream); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> stream_;
  std::vector<std::uint8_t> out_;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> ByteSink::create(const std::string& path) {
  const int fd =
      path == "-" ? ::dup(STDOUT_FILENO) : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return failure({{path, 0, 0}, "cannot write", std::strerror(errno), "a file that can be written"});
  if (path.ends_with(".gz")) return std::make_unique<GzipSink>(fd);
  if (path.ends_with(".zst")) return std::make_unique<ZstdSink>(fd);
  return std::make_unique<PlainSink>(fd);
}

}  // namespace penstock::port
