// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses the records of a classic capture where they lie: in the pages of the file or in a buffer.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "port/capture_window.h"
#include "port/raw_capture_reader.h"

namespace penstock::port {

/// Whether libpcap changes nothing in packets of this link type, and accepts as many bytes of them as of most types.
[[nodiscard]] bool is_plain_link_type(std::uint32_t link_type);

/// Whether this is a classic capture of this machine's byte order and a plain link type.
[[nodiscard]] bool is_plain(std::span<const std::uint8_t> first);

/// Reads a capture that is_plain.
[[nodiscard]] Result<std::unique_ptr<RawCaptureReader>> open_classic(const std::string& path,
                                                                     const RawCaptureReader::FileHeader& first,
                                                                     std::unique_ptr<CaptureWindow> window,
                                                                     const ReadControl& control);

}  // namespace penstock::port
