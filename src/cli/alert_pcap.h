// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock scan --alert-pcap`: the packets that alerts were raised at, each once, in the captures' order, copied from
// the captures in a second pass. So the result does not depend on the number of workers.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "nf/nids/alert/frame_set.h"

namespace penstock::cli {

/// Before the run: whether the captures can be read again, and the file can be written and is none of `files`, those
/// that the scan reads and writes.
[[nodiscard]] Errors check_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                                      std::span<const Parameters::File> files);

/// Copies `frames` of the captures to `path`, whose name says the format (port/capture_writer.h). Errors in captures
/// are those that the run has met, and are not repeated.
[[nodiscard]] Errors write_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                                      const nids::FrameSet& frames);

}  // namespace penstock::cli
