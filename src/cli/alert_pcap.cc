// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/alert_pcap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/output_file.h"
#include "base/text_file.h"
#include "port/capture_reader.h"
#include "port/capture_writer.h"

namespace penstock::cli {

namespace {

PacketDescriptor descriptor_of(const port::CapturedFrame& frame) {
  PacketDescriptor packet{};
  packet.length = static_cast<std::uint32_t>(frame.bytes.size());
  packet.wire_length = frame.wire_length;
  packet.timestamp_ns = frame.timestamp_ns;
  packet.link_type = frame.link_type;
  return packet;
}

}  // namespace

Errors check_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                        std::span<const Parameters::File> files) {
  Errors errors;
  for (const std::string& capture : captures) {
    std::error_code none;
    const bool is_file =
        capture != "-" && (!std::filesystem::exists(capture, none) || std::filesystem::is_regular_file(capture, none));
    if (is_file) continue;
    errors.push_back({{capture == "-" ? "standard input" : capture, 0, 0},
                      "--alert-pcap reads every capture twice",
                      "standard input, a pipe or a device",
                      "a file"});
  }
  if (path == "-") return errors;
  const std::string target = resolved_path(path);
  if (std::ranges::any_of(files, [&](const Parameters::File& file) { return resolved_path(file.path) == target; })) {
    errors.push_back(
        {{"--alert-pcap", 0, 0}, "would overwrite a file that this scan uses", in_quotes(path), "another file"});
  }
  if (auto named = check_compression(path, port::ByteSink::kCompressions); !named)
    append(errors, std::move(named).error());
  if (auto writable = check_writable(path); !writable) append(errors, std::move(writable).error());
  return errors;
}

Errors write_alert_pcap(const std::string& path, const std::vector<std::string>& captures,
                        const nids::FrameSet& frames) {
  const auto precision = frames.has_nanoseconds() ? port::Precision::nanoseconds : port::Precision::microseconds;
  auto writer = port::CaptureWriter::open(path, precision);
  if (!writer) return std::move(writer).error();
  (*writer)->begin();
  port::ReadControl control;
  auto sequence = port::CaptureSequence::open(captures, control, port::BadCapture::skip);
  if (!sequence) return std::move(sequence).error();
  {
    port::CaptureWriter::Buffer buffer(**writer);
    for (port::CapturedFrame frame; !(*writer)->failed() && sequence->next(frame);) {
      if (!frames.contains(frame.number)) continue;
      PacketDescriptor packet = descriptor_of(frame);
      const PacketView view{const_cast<std::uint8_t*>(frame.bytes.data()), &packet};  // not modified
      static_cast<void>(buffer.add({&view, 1}));
    }
    static_cast<void>(buffer.flush());
  }
  return (*writer)->close();
}

}  // namespace penstock::cli
