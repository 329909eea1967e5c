// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Parses the packets of a pcapng capture where they lie, in the pages of the file. libpcap's own view is kept beside
// this one: it has read the capture up to its first interface. Whatever is not entirely ordinary is left to libpcap. It
// gets the later interfaces, then the capture from the unusual block on, and reads to the end. So its errors and its
// treatment of odd captures need no copy here.

#pragma once

#include <memory>
#include <string>

#include "port/capture_window.h"
#include "port/raw_capture_reader.h"

namespace penstock::port {

/// Takes the pages of a pcapng capture in this machine's byte order, and reads it. Null if they are anything else, if
/// the capture is unusual up to its first interface, or if libpcap refuses it; then `pages` is as before.
[[nodiscard]] std::unique_ptr<RawCaptureReader> open_pcapng(const std::string& path,
                                                            std::unique_ptr<MappedWindow>& pages,
                                                            const ReadControl& control);

}  // namespace penstock::port
