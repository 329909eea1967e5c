// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/byte_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace penstock::port {

namespace {

// The workers wait for the compressor.
constexpr int kGzipLevel = 1;
constexpr int kZstdLevel = 3;
constexpr std::size_t kChunk = 256 << 10;

/// An open file. Owns the descriptor.
struct Output {
  int fd = -1;
  bool emptied_first = false;  // a file of the user's that is opened by its name
  std::string made{};          // its name, where it was not there before
};

class PlainSink : public ByteSink {
 public:
  explicit PlainSink(Output output) noexcept
      : fd_(output.fd), emptied_first_(output.emptied_first), made_(std::move(output.made)) {}
  PlainSink(const PlainSink&) = delete;
  PlainSink& operator=(const PlainSink&) = delete;
  ~PlainSink() override {
    if (fd_ >= 0) ::close(fd_);
    if (!made_.empty()) ::unlink(made_.c_str());
  }

  void begin() noexcept override {
    made_.clear();
    if (emptied_first_ && ::ftruncate(fd_, 0) != 0) reason_ = std::strerror(errno);
  }
  std::size_t write(std::span<const std::uint8_t> bytes) noexcept override { return write_fd(bytes); }
  bool finish() noexcept override { return close_fd(); }
  const std::string& reason() const noexcept override { return reason_; }

 protected:
  std::size_t write_fd(std::span<const std::uint8_t> bytes) noexcept {
    std::size_t written = 0;
    while (written < bytes.size() && reason_.empty()) {
      const ssize_t wrote = ::write(fd_, bytes.data() + written, bytes.size() - written);
      if (wrote >= 0) {
        written += static_cast<std::size_t>(wrote);
      } else if (errno != EINTR) {
        reason_ = std::strerror(errno);
      }
    }
    return written;
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
  bool emptied_first_;
  std::string made_;
};

class GzipSink final : public PlainSink {
 public:
  explicit GzipSink(Output output) : PlainSink(std::move(output)), out_(kChunk) {
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

  std::size_t write(std::span<const std::uint8_t> bytes) noexcept override {
    return compress(bytes, Z_NO_FLUSH) ? bytes.size() : 0;
  }
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
  explicit ZstdSink(Output output) : PlainSink(std::move(output)), stream_(ZSTD_createCCtx()), out_(kChunk) {
    if (stream_ == nullptr) reason_ = "no memory for zstd";
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1);
  }

  std::size_t write(std::span<const std::uint8_t> bytes) noexcept override {
    return compress(bytes, ZSTD_e_continue) ? bytes.size() : 0;
  }
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

Error cannot_write(const std::string& path, std::string reason) {
  return {{path, 0, 0}, "cannot write", std::move(reason), "a file that can be written"};
}

/// A pipe is opened only once it has a reader, and open(2) can wait for that but not be told to stop.
Result<int> open_pipe(const std::string& path, int stop_fd) {
  constexpr int kAskAgain_ms = 20;
  for (;;) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) {
      ::fcntl(fd, F_SETFL, O_WRONLY);  // from now on a write waits for the reader
      return fd;
    }
    if (errno != ENXIO && errno != EINTR) return failure(cannot_write(path, std::strerror(errno)));
    pollfd stop{stop_fd, POLLIN, 0};
    if (::poll(&stop, 1, kAskAgain_ms) > 0) {
      return failure({{path, 0, 0}, "stopped before the pipe had a reader", "", ""});
    }
  }
}

Result<Output> open_output(const std::string& path, int stop_fd) {
  Output output;
  struct stat status {};
  if (path == "-") {
    output.fd = ::dup(STDOUT_FILENO);
  } else if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    const auto fd = open_pipe(path, stop_fd);
    if (!fd) return tl::unexpected(fd.error());
    output.fd = *fd;
  } else {
    output.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (output.fd >= 0) {
      output.made = path;
    } else if (errno == EEXIST) {
      output.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    }
    output.emptied_first = output.fd >= 0 && ::fstat(output.fd, &status) == 0 && S_ISREG(status.st_mode);
  }
  if (output.fd < 0) return failure(cannot_write(path, std::strerror(errno)));
  return output;
}

}  // namespace

Result<std::unique_ptr<ByteSink>> ByteSink::open(const std::string& path, int stop_fd) {
  auto output = open_output(path, stop_fd);
  if (!output) return tl::unexpected(std::move(output.error()));
  if (path.ends_with(".gz")) return std::make_unique<GzipSink>(std::move(*output));
  if (path.ends_with(".zst")) return std::make_unique<ZstdSink>(std::move(*output));
  return std::make_unique<PlainSink>(std::move(*output));
}

}  // namespace penstock::port
