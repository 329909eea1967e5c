// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/capture_reader.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <utility>

#include "port/pcap_reader.h"
#include "port/pcapng_reader.h"

namespace penstock::port {

Result<CaptureReader> CaptureReader::open(const std::string& path, ReadControl& control) {
  auto source = ByteSource::open(path, control);
  if (!source) return tl::unexpected(std::move(source.error()));
  CaptureReader reader(path == "-" ? "standard input" : path, std::make_unique<BufferedSource>(std::move(*source)),
                       control);
  const auto first = reader.source_->peek(4);
  if (control.stopped.load()) return failure({{reader.path_, 0, 0}, "stopped before the capture began", "", ""});
  if (first.empty() && reader.source().reason().empty()) {
    return failure({{reader.path_, 0, 0}, "the file is empty", "", "a capture: pcap or pcapng"});
  }
  Result<void> opened;
  if (PcapngReader::recognises(first)) {
    auto pcapng = std::make_unique<PcapngReader>(*reader.source_);
    // Only for files: a pipe's first packet may take a long time to arrive.
    opened = pcapng->begin(reader.path_, reader.source().is_regular_file());
    reader.format_ = std::move(pcapng);
  } else {
    opened = PcapReader::open(*reader.source_, reader.path_).map([&](std::unique_ptr<PcapReader> pcap) {
      reader.format_ = std::move(pcap);
    });
  }
  if (control.stopped.load()) return failure({{reader.path_, 0, 0}, "stopped before the capture began", "", ""});
  if (!opened) return tl::unexpected(std::move(opened.error()));
  return reader;
}

CaptureReader::Status CaptureReader::next(CapturedFrame& frame) noexcept {
  const Status status = format_->next(frame);
  if (status == Status::broken && control_->stopped.load()) return Status::end;
  broken_ = status == Status::broken;
  return status;
}

Errors CaptureReader::errors() const {
  Errors errors = format_->left_out(path_);
  if (broken_) {
    errors.push_back(system_error(path_, fmt::format("the capture is broken after packet {}", format_->packets()),
                                  format_->reason()));
  }
  return errors;
}

Errors check_captures(const std::vector<std::string>& paths) {
  Errors errors;
  for (const std::string& path : paths) {
    std::error_code none;
    const auto status = std::filesystem::status(path, none);
    if (path == "-") continue;
    if (std::filesystem::exists(status) && !is_regular_file(status) && !is_directory(status)) {
      if (::access(path.c_str(), R_OK) == 0) continue;
      errors.push_back(system_error(path, "cannot open", std::strerror(errno)));
      continue;
    }
    ReadControl control;
    if (auto reader = CaptureReader::open(path, control); !reader) append(errors, std::move(reader.error()));
  }
  return errors;
}

Result<CaptureSequence> CaptureSequence::open(std::vector<std::string> paths, ReadControl& control, BadCapture bad) {
  CaptureSequence sequence(control, bad);
  Errors errors;
  for (std::string& path : paths) {
    const std::uint64_t before = control.bytes_read.load();
    auto reader = CaptureReader::open(path, control);
    if (!reader) {
      append(errors, std::move(reader.error()));
      continue;
    }
    Input input{std::move(path), std::nullopt};
    if (reader->source().is_regular_file()) {
      sequence.total_bytes_ += reader->source().size_on_disk();
      control.bytes_read.store(before);  // it is opened again when its turn comes
    } else {
      sequence.never_waits_ = false;
      input.opened = std::move(*reader);
    }
    sequence.waiting_.push_back(std::move(input));
  }
  const bool refused = bad == BadCapture::stop || sequence.waiting_.empty() || control.stopped.load();
  if (!errors.empty() && refused) return failure(std::move(errors));
  sequence.errors_ = std::move(errors);
  if (!sequence.never_waits_) sequence.total_bytes_ = 0;
  return sequence;
}

bool CaptureSequence::next(CapturedFrame& frame) noexcept {
  for (;;) {
    if (current_) {
      const CaptureReader::Status status = current_->next(frame);
      if (status == CaptureReader::Status::packet) {
        frame.number += packets_before_;
        return true;
      }
      append(errors_, current_->errors());
      packets_before_ += current_->packets();
      current_.reset();
      if (status == CaptureReader::Status::broken && bad_ == BadCapture::stop) waiting_.clear();
    }
    if (waiting_.empty()) return false;
    Input input = std::move(waiting_.front());
    waiting_.pop_front();
    if (input.opened) {
      current_ = std::move(input.opened);
      places_.begin_file(packets_before_, current_->path());
      continue;
    }
    auto reader = CaptureReader::open(input.path, *control_);
    if (!reader) {
      append(errors_, std::move(reader.error()));
      if (bad_ == BadCapture::stop || control_->stopped.load()) waiting_.clear();
      continue;
    }
    current_ = std::move(*reader);
    places_.begin_file(packets_before_, current_->path());
  }
}

Error PacketPlaces::fits_no_batch(const OversizedFrame& frame, std::string_view what_ended) const {
  // The last file that has fewer packets than `frame.number` before it.
  const auto next = std::ranges::lower_bound(files_, frame.number, {}, &std::pair<std::uint64_t, std::string>::first);
  const auto& [before, path] = *std::prev(next);
  return {{path, 0, 0},
          fmt::format("{} ended at packet {}: the frame does not fit in a batch", what_ended, frame.number - before),
          fmt::format("{} bytes", frame.bytes),
          "larger batches (run: batch: bytes)"};
}

}  // namespace penstock::port
