// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of capture files, in order: pcap and pcapng, compressed or not. A capture that is broken in its middle
// gives all packets before that place, and then an error.

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
  /// An error where the file cannot be opened, is no capture, or has no link type that Penstock reads.
  static Result<CaptureReader> open(const std::string& path, ReadControl& control);

  using Status = CaptureFormat::Status;  // end: also where it is stopped
  /// Packets of a link type that is not supported are left out; see `errors`.
  Status next(CapturedFrame& frame) noexcept;

  /// After `end` or `broken`: the file, the place in it and the reason, and what was left out.
  [[nodiscard]] Errors errors() const;
  /// Packets so far, with those that were left out.
  [[nodiscard]] std::uint64_t packets() const noexcept { return format_->packets(); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const ByteSource& source() const noexcept { return source_->source(); }

 private:
  CaptureReader(std::string path, std::unique_ptr<BufferedSource> source, const ReadControl& control) noexcept
      : path_(std::move(path)), source_(std::move(source)), control_(&control) {}

  std::string path_;
  std::unique_ptr<BufferedSource> source_;  // outlives format_, which reads from it
  const ReadControl* control_;
  std::unique_ptr<CaptureFormat> format_;
  bool broken_ = false;
};

/// What is wrong with captures as far as their headers tell, all at once. Pipes and devices are not opened.
[[nodiscard]] Errors check_captures(const std::vector<std::string>& paths);

/// What to do about a capture that cannot be read, or not to its end.
enum class BadCapture : std::uint8_t {
  stop,  // one that cannot be opened is refused beforehand; one that breaks off ends the reading
  skip,  // it is reported at the end, and the next one is read; refused is only a list of such captures alone
};

/// Which file of several the packets lie in.
class PacketPlaces {
 public:
  /// The next file begins, after so many packets of all files before it.
  void begin_file(std::uint64_t packets_before, std::string path) {
    files_.emplace_back(packets_before, std::move(path));
  }
  /// "reading ended at packet 3: …", with the file of that frame as its place.
  [[nodiscard]] Error fits_no_batch(const OversizedFrame& frame, std::string_view what_ended) const;

 private:
  std::vector<std::pair<std::uint64_t, std::string>> files_;
};

/// Several capture files, one behind the other, as if they were one. Holds one regular file open at a time.
class CaptureSequence {
 public:
  /// Checks all files' headers, so that the user hears of every mistake at once. `control` outlives the sequence.
  static Result<CaptureSequence> open(std::vector<std::string> paths, ReadControl& control,
                                      BadCapture bad = BadCapture::stop);

  /// False at the end, or where a file is broken and `bad` says to stop there; `errors` then says what is wrong.
  bool next(CapturedFrame& frame) noexcept;
  [[nodiscard]] const Errors& errors() const noexcept { return errors_; }

  /// Of the packets that `next` has given; for the thread that called it.
  [[nodiscard]] const PacketPlaces& places() const noexcept { return places_; }

  /// Whether all inputs are regular files: then `next` never waits for others.
  [[nodiscard]] bool never_waits() const noexcept { return never_waits_; }
  /// Of all files on the disk; 0 where it is not known.
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
  std::uint64_t packets_before_ = 0;  // in the files before this one
  bool never_waits_ = true;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace penstock::port
