// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// `penstock scan --alert-pcap`: writes the packets that raised alerts, each once and in the captures' order. They are
// copied from the captures in a second pass, so the result does not depend on the number of workers.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/parameter.h"
#include "nf/nids/alert/frame_set.h"

namespace penstock::cli {

/// Call it before the run. Checks that the captures can be read twice, and that the file can be written and is none of
/// `files`, which the scan reads and writes.
[[nodiscard]] Errors check_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                                      std::span<const Parameters::File> files);

/// Copies `frames` from the captures to `path`, whose name determines the format (port/capture_writer.h). Errors in
/// captures are not returned, since the run has already reported them.
[[nodiscard]] Errors write_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                                      const nids::FrameSet& frames);

}  // namespace penstock::cli
