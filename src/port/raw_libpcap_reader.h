// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the records of a capture through libpcap, for those that are not parsed in place.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "port/capture_window.h"
#include "port/raw_capture_reader.h"

namespace penstock::port {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};
using FileHandle = std::unique_ptr<std::FILE, CloseFile>;

[[nodiscard]] Error not_a_capture(const std::string& path, std::string_view reason);

/// Opens the capture in `stream`, and takes ownership of it.
[[nodiscard]] Result<PcapHandle> open_stream(FileHandle stream, const std::string& path);

/// What libpcap reads: some bytes, then those of a window if `continues` is set. The window must outlive it.
struct LibpcapInput {
  CaptureWindow* window = nullptr;
  bool continues = true;
  std::vector<std::uint8_t> ahead;
  std::size_t taken = 0;  // of `ahead`

  /// This must outlive the stream. Only one thread may read.
  [[nodiscard]] FileHandle stream();
};

/// Takes packets from libpcap, and copies them.
class CopiedRecords {
 public:
  CopiedRecords();

  /// The next records, at most `most`. Empty at the end, or at an error. Valid until the next call.
  std::span<const RawRecord> next(pcap* capture, std::size_t most) noexcept;
  /// Whether an error has ended the records; `pcap_geterr` has its reason.
  [[nodiscard]] bool broken() const noexcept { return broken_; }

 private:
  void add(const RawRecord& record, std::int32_t seconds, std::int32_t microseconds);

  std::vector<RawRecord> records_;
  std::vector<std::size_t> places_;  // of the records in `bytes_`
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
  bool ended_ = false, broken_ = false;
};

/// Reads any capture.
[[nodiscard]] Result<std::unique_ptr<RawCaptureReader>> open_by_libpcap(const std::string& path,
                                                                        std::unique_ptr<CaptureWindow> window,
                                                                        const ReadControl& control);

}  // namespace penstock::port
