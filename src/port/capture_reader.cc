// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/capture_reader.h"

#include <fmt/format.h>
#include <pcap/pcap.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "port/link_types.h"

namespace penstock::port {

namespace {

constexpr std::size_t kStdioBuffer = 64 << 10;  // stays in the second-level cache beside a batch

ssize_t read_cookie(void* cookie, char* into, std::size_t size) {
  return static_cast<ByteSource*>(cookie)->read({reinterpret_cast<std::uint8_t*>(into), size});
}

/// `tv_usec` holds nanoseconds here. Broken captures hold more than a second's worth of them.
std::uint64_t nanoseconds_of(const timeval& time, bool pcapng) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr std::int64_t kMostSeconds = std::numeric_limits<std::uint64_t>::max() / kSecond - 8;
  std::int64_t seconds = time.tv_sec;
  // libpcap takes the 32 bits of the classic format for a signed number; from 2038 on they are not.
  if (!pcapng) seconds &= 0xffffffff;
  if (seconds < 0) return 0;
  if (seconds > kMostSeconds) return std::numeric_limits<std::uint64_t>::max();
  const auto carried = std::clamp<std::int64_t>(time.tv_usec, 0, 8 * kSecond);
  return static_cast<std::uint64_t>(seconds) * kSecond + static_cast<std::uint64_t>(carried);
}

/// libpcap gives the version in the file's header: 1 for pcapng, 2 or more for the classic formats.
bool is_pcapng(pcap_t* capture) noexcept { return pcap_major_version(capture) == 1; }

}  // namespace

void CaptureReader::ClosePcap::operator()(pcap* capture) const noexcept { pcap_close(capture); }

Result<CaptureReader> CaptureReader::open(const std::string& path, ReadControl& control) {
  const std::uint64_t read_before = control.bytes_read.load();
  auto source = ByteSource::open(path, control);
  if (!source) return tl::unexpected(std::move(source.error()));
  CaptureReader reader(path == "-" ? "standard input" : path, std::move(*source), control);

  const cookie_io_functions_t functions{read_cookie, nullptr, nullptr, nullptr};
  std::FILE* stream = fopencookie(reader.source_.get(), "r", functions);
  if (stream == nullptr) return failure({{reader.path_, 0, 0}, "cannot read", "no memory", ""});
  std::setvbuf(stream, nullptr, _IOFBF, kStdioBuffer);
  __fsetlocking(stream, FSETLOCKING_BYCALLER);  // one thread reads: no lock for each packet
  std::array<char, PCAP_ERRBUF_SIZE> reason{};
  reader.pcap_.reset(pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason.data()));
  if (!reader.pcap_) {
    std::fclose(stream);
    if (control.stopped.load()) return failure({{reader.path_, 0, 0}, "stopped before the capture began", "", ""});
    const std::string& deeper = reader.source_->reason();
    if (deeper.empty() && control.bytes_read.load() == read_before) {
      return failure({{reader.path_, 0, 0}, "the file is empty", "", "a capture: pcap or pcapng"});
    }
    return failure(
        {{reader.path_, 0, 0}, "not a readable capture", deeper.empty() ? reason.data() : deeper, "pcap or pcapng"});
  }
  const int dlt = pcap_datalink(reader.pcap_.get());
  const auto link_type = link_type_of_dlt(dlt);
  if (!link_type) {
    return failure({{reader.path_, 0, 0}, "link type not supported", describe_dlt(dlt), supported_dlts()});
  }
  reader.link_type_ = *link_type;
  reader.pcapng_ = is_pcapng(reader.pcap_.get());
  return reader;
}

CaptureReader::Status CaptureReader::next(CapturedFrame& frame) noexcept {
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  const int status = pcap_next_ex(pcap_.get(), &header, &bytes);
  if (status == PCAP_ERROR_BREAK) return Status::end;
  if (status != 1) return control_->stopped.load() ? Status::end : Status::broken;
  ++packets_;
  frame.bytes = {bytes, header->caplen};
  frame.timestamp_ns = nanoseconds_of(header->ts, pcapng_);
  frame.wire_length = std::max(header->len, header->caplen);
  frame.link_type = link_type_;
  return Status::packet;
}

Error CaptureReader::error() const {
  const std::string& deeper = source_->reason();
  return {{path_, 0, 0},
          fmt::format("the capture is broken behind packet {}", packets_),
          deeper.empty() ? pcap_geterr(pcap_.get()) : deeper,
          ""};
}

Errors check_captures(const std::vector<std::string>& paths) {
  Errors errors;
  for (const std::string& path : paths) {
    std::error_code none;
    const auto status = std::filesystem::status(path, none);
    if (path == "-") continue;
    if (std::filesystem::exists(status) && !is_regular_file(status) && !is_directory(status)) {
      if (::access(path.c_str(), R_OK) == 0) continue;
      errors.push_back({{path, 0, 0}, "cannot open", std::strerror(errno), "a capture"});
      continue;
    }
    ReadControl control;
    if (auto reader = CaptureReader::open(path, control); !reader) append(errors, std::move(reader.error()));
  }
  return errors;
}

Result<CaptureSequence> CaptureSequence::open(std::vector<std::string> paths, ReadControl& control) {
  CaptureSequence sequence(control);
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
      control.bytes_read.store(before);  // it is opened again in its turn
    } else {
      sequence.never_waits_ = false;
      input.opened = std::move(*reader);
    }
    sequence.waiting_.push_back(std::move(input));
  }
  if (!errors.empty()) return failure(std::move(errors));
  if (!sequence.never_waits_) sequence.total_bytes_ = 0;
  return sequence;
}

bool CaptureSequence::next(CapturedFrame& frame) noexcept {
  for (;;) {
    if (current_) {
      switch (current_->next(frame)) {
        case CaptureReader::Status::packet: frame.number = ++frames_; return true;
        case CaptureReader::Status::end: current_.reset(); break;
        case CaptureReader::Status::broken:
          errors_.push_back(current_->error());
          current_.reset();
          waiting_.clear();
          return false;
      }
    }
    if (waiting_.empty()) return false;
    Input input = std::move(waiting_.front());
    waiting_.pop_front();
    if (input.opened) {
      current_ = std::move(input.opened);
      continue;
    }
    auto reader = CaptureReader::open(input.path, *control_);
    if (!reader) {
      append(errors_, std::move(reader.error()));
      waiting_.clear();
      return false;
    }
    current_ = std::move(*reader);
  }
}

}  // namespace penstock::port
