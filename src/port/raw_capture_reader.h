// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the records of a capture as libpcap does: all its formats and link types, the same packets, the same errors.
// For programs that copy records to another capture. Captures of this machine's byte order are parsed in place: classic
// ones in the pages of the file or, if they come through a pipe or are compressed, in a buffer; pcapng in the pages of
// the file. libpcap reads all others.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/error.h"
#include "port/byte_source.h"

struct pcap;

namespace penstock::port {

/// A packet, and its record header as a classic capture in microseconds and this machine's byte order has it: seconds,
/// microseconds, captured and original length. In many captures, `header` and `data` are adjacent.
struct RawRecord {
  static constexpr std::size_t kHeaderBytes = 16;

  const std::uint8_t* header = nullptr;
  const std::uint8_t* data = nullptr;
  std::uint32_t length = 0;       // captured bytes
  std::uint32_t wire_length = 0;  // may be less than `length` if the capture says so
};

struct ClosePcap {
  void operator()(pcap* capture) const noexcept;
};
using PcapHandle = std::unique_ptr<pcap, ClosePcap>;

class RawCaptureReader {
 public:
  using FileHeader = std::array<std::uint8_t, 24>;
  /// The most records that `next` returns.
  static constexpr std::size_t kMostRecords = 4096;

  virtual ~RawCaptureReader() = default;
  RawCaptureReader(const RawCaptureReader&) = delete;
  RawCaptureReader& operator=(const RawCaptureReader&) = delete;

  /// `path` "-" is the standard input. `control` must outlive the reader. Fails if libpcap cannot read the capture.
  static Result<std::unique_ptr<RawCaptureReader>> open(const std::string& path, ReadControl& control);

  /// The next records: those that have arrived, but at least one. Empty at the end, at damage, or if reading was
  /// stopped. Valid until the next call.
  [[nodiscard]] virtual std::span<const RawRecord> next() noexcept = 0;
  /// What is wrong with the capture, once `next` has returned no records; empty if nothing is.
  [[nodiscard]] virtual std::string reason() const = 0;
  /// The errors for the user, if there is a `reason`.
  [[nodiscard]] Errors errors() const;

  /// The file header that libpcap writes to a classic capture of these packets. Fails if there is none for the link
  /// type.
  [[nodiscard]] Result<FileHeader> file_header() const;
  /// libpcap's view of the file header, for its expression compiler. Reading packets from it is not allowed.
  [[nodiscard]] pcap* capture() const noexcept { return pcap_.get(); }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// 0 if unknown.
  [[nodiscard]] virtual std::uint64_t size_on_disk() const noexcept = 0;
  /// Whether packets arrive while they are read, as from a pipe.
  [[nodiscard]] virtual bool is_live() const noexcept = 0;

 protected:
  RawCaptureReader(std::string path, PcapHandle capture) noexcept : path_(std::move(path)), pcap_(std::move(capture)) {}

  std::string path_;
  PcapHandle pcap_;
  std::uint64_t packets_ = 0;  // that `next` has returned
};

}  // namespace penstock::port
