// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/byte_sink.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "base/text_file.h"

namespace penstock::port {

namespace {

// Fast levels, since the workers wait for the compressor.
constexpr int kGzipLevel = 1;
constexpr int kZstdLevel = 3;
constexpr std::size_t kChunk = 256 << 10;
constexpr std::size_t kMostPieces = 1024;  // of one writev(2): IOV_MAX of Linux
// For larger writes, the kernel takes larger blocks of memory. In a virtual machine that returns free memory to its
// host, these are slow to get.
constexpr std::size_t kMostAtOnce = 256 << 10;

// A block of compressed output ends with the first write after either limit.
constexpr std::size_t kBlockBytes = 1 << 20;
constexpr std::chrono::seconds kBlockTime{1};

/// How long an interrupted run waits for a reader that takes nothing.
constexpr int kLastWaitMs = 1000;

/// An open output.
struct Output {
  int fd = -1;
  int stop_fd = -1;
  bool waits = false;          // a pipe or a device: a write may block
  bool non_blocking = false;   // otherwise a write of more than PIPE_BUF blocks even if poll(2) has reported room
  bool emptied_first = false;  // an existing regular file, opened by its name, that `begin` truncates
  std::string made{};          // its path if it was created
};

class PlainSink : public ByteSink {
 public:
  /// Takes ownership of the descriptor.
  explicit PlainSink(Output output) noexcept : output_(std::move(output)) {}
  PlainSink(const PlainSink&) = delete;
  PlainSink& operator=(const PlainSink&) = delete;
  ~PlainSink() override {
    if (output_.fd >= 0) ::close(output_.fd);
    if (!output_.made.empty()) ::unlink(output_.made.c_str());
  }

  void begin() noexcept override {
    output_.made.clear();
    // After truncating even an empty file, ext4 writes the new content to the disk when the file is closed.
    struct stat status {};
    const bool is_empty = ::fstat(output_.fd, &status) == 0 && status.st_size == 0;
    if (output_.emptied_first && !is_empty && ::ftruncate(output_.fd, 0) != 0) reason_ = std::strerror(errno);
  }
  std::size_t write(std::span<const std::uint8_t> bytes) noexcept override { return write_fd(bytes); }
  bool write_all(std::span<const std::span<const std::uint8_t>> pieces) noexcept override {
    if (output_.waits) return write_one_by_one(pieces);
    for (std::size_t offset = 0; !pieces.empty() && reason_.empty();) {
      std::size_t wrote = write_some(pieces, offset) + offset;  // from the begin of the first piece on
      while (!pieces.empty() && pieces.front().size() <= wrote) {
        wrote -= pieces.front().size();
        pieces = pieces.subspan(1);
      }
      offset = wrote;
    }
    return reason_.empty();
  }
  bool takes_pieces() const noexcept override { return !output_.waits; }
  bool finish() noexcept override { return close_fd(); }
  const std::string& reason() const noexcept override { return reason_; }

 protected:
  std::size_t write_fd(std::span<const std::uint8_t> bytes) noexcept {
    const std::size_t most =
        !output_.waits || output_.non_blocking ? std::numeric_limits<std::size_t>::max() : PIPE_BUF;
    std::size_t written = 0;
    while (written < bytes.size() && reason_.empty()) {
      if (output_.waits && !wait()) {
        reason_ = "the run ended while the reader was not reading";
        break;
      }
      const ssize_t wrote = ::write(output_.fd, bytes.data() + written, std::min(most, bytes.size() - written));
      if (wrote >= 0) {
        written += static_cast<std::size_t>(wrote);
      } else if (errno != EINTR && errno != EAGAIN) {
        reason_ = std::strerror(errno);
      }
    }
    return written;
  }

  bool close_fd() noexcept {
    // Some file systems report a full disk only when the file is closed.
    if (::close(output_.fd) != 0 && reason_.empty()) reason_ = std::strerror(errno);
    output_.fd = -1;
    return reason_.empty();
  }

  std::string reason_;

 private:
  /// Writes bytes from `offset` of the first piece on, and returns how many.
  std::size_t write_some(std::span<const std::span<const std::uint8_t>> pieces, std::size_t offset) noexcept {
    std::array<iovec, kMostPieces> vector;
    std::size_t count = 0, bytes = 0;
    for (; count < std::min(pieces.size(), vector.size()) && bytes < kMostAtOnce; ++count) {
      const auto piece = pieces[count].subspan(count == 0 ? offset : 0);
      vector[count] = {const_cast<std::uint8_t*>(piece.data()), std::min(piece.size(), kMostAtOnce - bytes)};
      bytes += vector[count].iov_len;
    }
    for (;;) {
      const ssize_t wrote = ::writev(output_.fd, vector.data(), static_cast<int>(count));
      if (wrote >= 0) return static_cast<std::size_t>(wrote);
      if (errno == EINTR || errno == EAGAIN) continue;
      reason_ = std::strerror(errno);
      return 0;
    }
  }

  /// Blocks until there is room. False if there is none and the run is to end; a slow reader that still reads gets all
  /// data.
  bool wait() noexcept {
    std::array<pollfd, 2> ready{pollfd{output_.fd, POLLOUT, 0}, pollfd{output_.stop_fd, POLLIN, 0}};
    while (::poll(ready.data(), ready.size(), -1) < 0 && errno == EINTR) {
    }
    if (ready[0].revents != 0) return true;
    int room = 0;
    while ((room = ::poll(ready.data(), 1, kLastWaitMs)) < 0 && errno == EINTR) {
    }
    return room != 0;
  }

  Output output_;
};

/// Writes complete gzip members or Zstandard frames in a row. Even if the process crashes, all but the last of them can
/// be decompressed.
class CompressingSink : public PlainSink {
 public:
  explicit CompressingSink(Output output) : PlainSink(std::move(output)), out_(kChunk) {}

  std::size_t write(std::span<const std::uint8_t> bytes) noexcept override {
    if (block_bytes_ == 0) block_start_ = Clock::now();
    block_bytes_ += bytes.size();
    if (!compress(bytes)) return 0;
    const bool is_due = block_bytes_ >= kBlockBytes || Clock::now() - block_start_ >= kBlockTime;
    return !is_due || end_block() ? bytes.size() : 0;
  }
  bool write_all(std::span<const std::span<const std::uint8_t>> pieces) noexcept override {
    return write_one_by_one(pieces);
  }
  bool takes_pieces() const noexcept override { return false; }
  bool finish() noexcept override {
    if (block_bytes_ != 0) end_block();
    return close_fd();
  }

 protected:
  /// False if the bytes cannot be written; `reason_` then says why.
  virtual bool compress(std::span<const std::uint8_t> bytes) noexcept = 0;
  virtual bool end() noexcept = 0;

  std::vector<std::uint8_t> out_;

 private:
  using Clock = std::chrono::steady_clock;

  bool end_block() noexcept {
    block_bytes_ = 0;
    return end();
  }

  std::size_t block_bytes_ = 0;  // uncompressed
  Clock::time_point block_start_;
};

class GzipSink final : public CompressingSink {
 public:
  explicit GzipSink(Output output) : CompressingSink(std::move(output)) {
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

 private:
  bool compress(std::span<const std::uint8_t> bytes) noexcept override { return deflate_all(bytes, Z_NO_FLUSH); }
  bool end() noexcept override { return deflate_all({}, Z_FINISH) && deflateReset(&stream_) == Z_OK; }

  bool deflate_all(std::span<const std::uint8_t> bytes, int flush) noexcept {
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
};

class ZstdSink final : public CompressingSink {
 public:
  explicit ZstdSink(Output output) : CompressingSink(std::move(output)), stream_(ZSTD_createCCtx()) {
    if (stream_ == nullptr) {
      reason_ = "no memory for zstd";
      return;
    }
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_compressionLevel, kZstdLevel);
    ZSTD_CCtx_setParameter(stream_.get(), ZSTD_c_checksumFlag, 1);
  }

 private:
  bool compress(std::span<const std::uint8_t> bytes) noexcept override { return compress_all(bytes, ZSTD_e_continue); }
  bool end() noexcept override { return compress_all({}, ZSTD_e_end); }

  bool compress_all(std::span<const std::uint8_t> bytes, ZSTD_EndDirective mode) noexcept {
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
};

Error cannot_write(const std::string& path, std::string_view reason) {
  return system_error(path, "cannot write", reason);
}

/// Opens a pipe once it has a reader. open(2) could wait for that, but could not be interrupted by `stop_fd`.
Result<int> open_pipe(const std::string& path, int stop_fd) {
  constexpr int kAskAgainMs = 20;
  for (;;) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0) return fd;
    if (errno != ENXIO && errno != EINTR) return failure(cannot_write(path, std::strerror(errno)));
    pollfd stop{stop_fd, POLLIN, 0};
    if (::poll(&stop, 1, kAskAgainMs) > 0) {
      return failure({{path, 0, 0}, "stopped before the pipe had a reader", "", ""});
    }
  }
}

/// The shared descriptor is not made non-blocking, since other processes write to it too. A pipe is opened a second
/// time for our use alone.
Output open_stdout() {
  Output output;
  struct stat status {};
  if (::fstat(STDOUT_FILENO, &status) == 0 && S_ISFIFO(status.st_mode)) {
    output.fd = ::open("/proc/self/fd/1", O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    output.non_blocking = output.fd >= 0;
  }
  if (output.fd < 0) output.fd = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  return output;
}

/// Opens a new or existing file, or a device. The path may change until it is open.
Output open_named(const std::string& path) {
  Output output;
  // O_EXCL does not follow a symbolic link, hence the resolved path.
  const std::string resolved = resolved_path(path);
  output.fd = ::open(resolved.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NONBLOCK, 0666);
  if (output.fd >= 0) {
    output.made = resolved;
  } else if (errno == EEXIST) {
    output.fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  }
  output.non_blocking = true;
  return output;
}

Result<Output> open_output(const std::string& path, int stop_fd) {
  Output output;
  struct stat status {};
  if (path == "-") {
    output = open_stdout();
  } else if (::stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    const auto fd = open_pipe(path, stop_fd);
    if (!fd) return tl::unexpected(fd.error());
    output.fd = *fd;
    output.non_blocking = true;
  } else {
    output = open_named(path);
  }
  if (output.fd < 0) return failure(cannot_write(path, std::strerror(errno)));
  output.stop_fd = stop_fd;
  output.waits = ::fstat(output.fd, &status) != 0 || !S_ISREG(status.st_mode);
  output.emptied_first = !output.waits && path != "-";
  // If two ports or two runs wrote to one file, both would lose packets. Some file systems have no locks.
  if (output.emptied_first && ::flock(output.fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(output.fd);
    return failure(cannot_write(path, "another port or another run is writing to it"));
  }
  return output;
}

}  // namespace

bool ByteSink::write_all(std::span<const std::span<const std::uint8_t>> pieces) noexcept {
  return write_one_by_one(pieces);
}

bool ByteSink::write_one_by_one(std::span<const std::span<const std::uint8_t>> pieces) noexcept {
  return std::ranges::all_of(pieces,
                             [this](std::span<const std::uint8_t> piece) { return write(piece) == piece.size(); });
}

Result<std::unique_ptr<ByteSink>> ByteSink::open(const std::string& path, int stop_fd) {
  if (auto named = check_compression(path, kCompressions); !named) return tl::unexpected(std::move(named.error()));
  auto output = open_output(path, stop_fd);
  if (!output) return tl::unexpected(std::move(output.error()));
  if (path.ends_with(".gz")) return std::make_unique<GzipSink>(std::move(*output));
  if (path.ends_with(".zst")) return std::make_unique<ZstdSink>(std::move(*output));
  return std::make_unique<PlainSink>(std::move(*output));
}

}  // namespace penstock::port
