// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the packets of capture files in order: pcap and pcapng, compressed or not. From a file that is damaged in the
// middle, it returns all packets before the damage, and then an error.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "port/buffered_source.h"
#include "port/capture_format.h"

namespace penstock::port {

/// One capture file.
class CaptureReader {
 public:
  /// Fails if the file cannot be opened, is not a capture, or has no supported link type.
  static Result<CaptureReader> open(const std::string& path, ReadControl& control);

  using Status = CaptureFormat::Status;  // end: also if reading was stopped
  /// Skips packets of unsupported link types, and reports them through `errors`.
  Status next(CapturedFrame& frame) noexcept;

  /// After `end` or `broken`: the error with its file and position, and the skipped packets.
  [[nodiscard]] Errors errors() const;
  /// Packets read so far, including skipped ones.
  [[nodiscard]] std::uint64_t packets() const noexcept { return format_->packets(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const ByteSource& source() const noexcept { return source_->source(); }

 private:
  CaptureReader(std::string path, std::unique_ptr<BufferedSource> source, const ReadControl& control) noexcept
      : path_(std::move(path)), source_(std::move(source)), control_(&control) {}

  std::string path_;
  std::unique_ptr<BufferedSource> source_;  // must outlive format_, which reads from it
  const ReadControl* control_;
  std::unique_ptr<CaptureFormat> format_;
  bool broken_ = false;
};

/// Checks the headers of all captures, and reports all mistakes at once. Pipes and devices are not opened.
[[nodiscard]] Errors check_captures(const std::vector<std::string>& paths);

/// What to do if a capture cannot be opened, or is damaged.
enum class BadCapture : std::uint8_t {
  stop,  // refuse a file that cannot be opened; end the input at a damaged one
  skip,  // report it at the end and go on with the next file; fail only if no file can be read
};

/// Maps packet numbers to the files of a sequence.
class PacketPlaces {
 public:
  /// The next file begins, after `packets_before` packets in all earlier files.
  void begin_file(std::uint64_t packets_before, std::string path) {
    files_.emplace_back(packets_before, std::move(path));
  }
  /// The error "reading ended at packet 3: …", with the frame's file as its place.
  [[nodiscard]] Error fits_no_batch(const OversizedFrame& frame, std::string_view what_ended) const;

 private:
  std::vector<std::pair<std::uint64_t, std::string>> files_;
};

/// Reads several capture files in order, as if they were one. At most one regular file is open at a time.
class CaptureSequence {
 public:
  /// Checks the headers of all files, so that the user sees all mistakes at once. `control` must outlive the sequence.
  static Result<CaptureSequence> open(std::vector<std::string> paths, ReadControl& control,
                                      BadCapture bad = BadCapture::stop);

  /// False at the end of the input, or at a damaged file if `bad` is `stop`; `errors` then says what is wrong.
  bool next(CapturedFrame& frame) noexcept;
  [[nodiscard]] const Errors& errors() const noexcept { return errors_; }

  /// The files of the packets that `next` has returned. Only for the thread that calls `next`.
  [[nodiscard]] const PacketPlaces& places() const noexcept { return places_; }

  /// Whether all inputs are regular files, so that `next` never blocks on another process.
  [[nodiscard]] bool never_waits() const noexcept { return never_waits_; }
  /// The total size of all files on disk; 0 if unknown.
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  CaptureSequence(ReadControl& control, BadCapture bad) noexcept : control_(&control), bad_(bad) {}

  struct Input {
    std::string path;
    std::optional<CaptureReader> opened;  // a pipe cannot be opened twice
  };
  std::deque<Input> waiting_;
  std::optional<CaptureReader> current_;
  PacketPlaces places_;
  ReadControl* control_;
  BadCapture bad_;
  Errors errors_;
  std::uint64_t packets_before_ = 0;  // in the files before the current one
  bool never_waits_ = true;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace penstock::port
