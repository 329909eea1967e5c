// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads the classic capture format, through libpcap.

#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "port/buffered_source.h"
#include "port/capture_format.h"

struct pcap;

namespace penstock::port {

class PcapReader final : public CaptureFormat {
 public:
  /// `source` must outlive the reader. Fails if the file is not a capture, or has an unsupported link type.
  static Result<std::unique_ptr<PcapReader>> open(BufferedSource& source, const std::string& path);

  Status next(CapturedFrame& frame) noexcept override;
  [[nodiscard]] std::string reason() const override;
  [[nodiscard]] std::uint64_t packets() const noexcept override { return packets_; }
  [[nodiscard]] Errors left_out(const std::string&) const override { return {}; }

 private:
  struct ClosePcap {
    void operator()(pcap* capture) const noexcept;
  };
  using Handle = std::unique_ptr<pcap, ClosePcap>;

  PcapReader(BufferedSource& source, Handle pcap, LinkType link_type) noexcept;

  BufferedSource* source_;
  Handle pcap_;
  LinkType link_type_;
  std::uint64_t packets_ = 0;
};

}  // namespace penstock::port
