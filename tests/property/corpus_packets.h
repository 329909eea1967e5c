// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The captures of the corpus, for tests that are skipped if it does not exist.

#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "port/capture_reader.h"
#include "property/random_packets.h"

namespace penstock::property {

/// All capture files of the corpus, in order; empty if it does not exist.
inline std::vector<std::string> corpus_captures() {
  const char* set = std::getenv("PENSTOCK_CORPUS");
  const std::filesystem::path corpus = set != nullptr ? set : PENSTOCK_SOURCE_DIR "/../shared/data";
  std::vector<std::string> files;
  if (!std::filesystem::is_directory(corpus / "captures")) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus / "captures")) {
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The first `most` packets of each capture that can be read.
inline std::vector<Packet> corpus_packets(std::size_t most) {
  std::vector<Packet> packets;
  for (const std::string& file : corpus_captures()) {
    port::ReadControl control;
    auto captures = port::CaptureSequence::open({file}, control);
    if (!captures) continue;
    port::CapturedFrame frame;
    for (std::size_t n = 0; n < most && captures->next(frame); ++n) {
      Packet packet(Bytes(frame.bytes.begin(), frame.bytes.end()), frame.wire_length, frame.link_type);
      packet.descriptor.timestamp_ns = frame.timestamp_ns;
      packets.push_back(std::move(packet));
    }
  }
  return packets;
}

}  // namespace penstock::property
