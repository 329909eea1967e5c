// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The packets of capture files, in order, through libpcap: pcap and pcapng, compressed or not. A capture that is broken
// in its middle gives all packets before that place, and then an error.

#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/link_type.h"
#include "port/byte_source.h"

struct pcap;

namespace penstock::port {

/// A packet as the capture holds it. The bytes are the reader's, until its next call.
struct CapturedFrame {
  std::span<const std::uint8_t> bytes;
  std::uint64_t timestamp_ns = 0;  // what does not fit (before 1970, after 2554) becomes the nearest that does
  std::uint32_t wire_length = 0;   // never less than bytes.size(), even where a broken capture says so
  LinkType link_type = LinkType::ethernet;
  std::uint64_t number = 0;  // in a sequence of captures, from 1, counting on from one to the next
};

/// One capture file.
class CaptureReader {
 public:
  /// An error where the file cannot be opened, is no capture, or is of a link type that Penstock does not read.
  static Result<CaptureReader> open(const std::string& path, ReadControl& control);

  enum class Status : std::uint8_t { packet, end, broken };  // end: also where it is stopped
  Status next(CapturedFrame& frame) noexcept;

  /// After `broken`: the file, the place in it and the reason.
  [[nodiscard]] Error error() const;
  [[nodiscard]] const ByteSource& source() const noexcept { return *source_; }

 private:
  struct ClosePcap {
    void operator()(pcap* capture) const noexcept;
  };

  CaptureReader(std::string path, std::unique_ptr<ByteSource> source, const ReadControl& control) noexcept
      : path_(std::move(path)), source_(std::move(source)), control_(&control) {}

  std::string path_;
  std::unique_ptr<ByteSource> source_;  // outlives pcap_, which reads from it
  const ReadControl* control_;
  std::unique_ptr<pcap, ClosePcap> pcap_;
  LinkType link_type_ = LinkType::ethernet;
  bool pcapng_ = false;
  std::uint64_t packets_ = 0;
};

/// What is wrong with captures as far as their headers tell, all at once. Pipes and devices are not opened.
[[nodiscard]] Errors check_captures(const std::vector<std::string>& paths);

/// Several capture files, one behind the other, as if they were one. Holds one regular file open at a time.
class CaptureSequence {
 public:
  /// Checks all files' headers, so that the user hears of every mistake at once. `control` outlives the sequence.
  static Result<CaptureSequence> open(std::vector<std::string> paths, ReadControl& control);

  /// False at the end, or where a file is broken: then `errors` says so, and what follows it is not read.
  bool next(CapturedFrame& frame) noexcept;
  [[nodiscard]] const Errors& errors() const noexcept { return errors_; }

  /// Whether all inputs are regular files: then `next` never waits for others.
  [[nodiscard]] bool never_waits() const noexcept { return never_waits_; }
  /// Of all files on the disk; 0 where it is not known.
  [[nodiscard]] std::uint64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  explicit CaptureSequence(ReadControl& control) noexcept : control_(&control) {}

  struct Input {
    std::string path;
    std::optional<CaptureReader> opened;  // a pipe cannot be opened twice
  };
  std::deque<Input> waiting_;
  std::optional<CaptureReader> current_;
  ReadControl* control_;
  Errors errors_;
  std::uint64_t frames_ = 0;
  bool never_waits_ = true;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace penstock::port
