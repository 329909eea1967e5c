// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_libpcap_reader.h"

#include <pcap/pcap.h>
#include <stdio_ext.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "port/record_formats.h"

namespace penstock::port {

namespace {

ssize_t read_input(void* cookie, char* into, std::size_t size) {
  LibpcapInput& input = *static_cast<LibpcapInput*>(cookie);
  std::span<const std::uint8_t> bytes = std::span(input.ahead).subspan(input.taken);
  const bool is_ahead = !bytes.empty();
  if (!is_ahead && input.continues) bytes = input.window->view(1);
  const std::size_t count = std::min(size, bytes.size());
  if (count == 0) return input.window->reason().empty() ? 0 : -1;
  std::memcpy(into, bytes.data(), count);
  if (is_ahead) {
    input.taken += count;
  } else {
    input.window->advance(count);
  }
  return static_cast<ssize_t>(count);
}

class LibpcapReader final : public RawCaptureReader {
 public:
  LibpcapReader(std::string path, PcapHandle pcap, std::unique_ptr<CaptureWindow> window,
                std::unique_ptr<LibpcapInput> input, const ReadControl& control)
      : RawCaptureReader(std::move(path), std::move(pcap)),
        window_(std::move(window)),
        input_(std::move(input)),
        control_(&control) {}
  ~LibpcapReader() override { pcap_.reset(); }  // it reads from the input

  std::span<const RawRecord> next() noexcept override {
    // Reading may block for the next packet, which must not hold up this one.
    const auto records = records_.next(pcap_.get(), is_live() ? 1 : kMostRecords);
    packets_ += records.size();
    return records;
  }

  std::string reason() const override {
    if (!window_->reason().empty()) return window_->reason();
    return records_.broken() && !control_->stopped.load() ? pcap_geterr(pcap_.get()) : "";
  }
  std::uint64_t size_on_disk() const noexcept override { return window_->size_on_disk(); }
  bool is_live() const noexcept override { return window_->is_live(); }

 private:
  std::unique_ptr<CaptureWindow> window_;
  std::unique_ptr<LibpcapInput> input_;
  const ReadControl* control_;
  CopiedRecords records_;
};

}  // namespace

Error not_a_capture(const std::string& path, std::string_view reason) {
  return {{path, 0, 0}, "not a readable capture", std::string(reason), "pcap or pcapng"};
}

Result<PcapHandle> open_stream(FileHandle stream, const std::string& path) {
  if (!stream) return failure(system_error(path, "cannot read", "no memory"));
  char reason[PCAP_ERRBUF_SIZE] = "";
  PcapHandle pcap(pcap_fopen_offline_with_tstamp_precision(stream.get(), PCAP_TSTAMP_PRECISION_MICRO, reason));
  if (!pcap) return failure(not_a_capture(path, reason));
  static_cast<void>(stream.release());
  return pcap;
}

FileHandle LibpcapInput::stream() {
  const cookie_io_functions_t functions{read_input, nullptr, nullptr, nullptr};
  FileHandle stream(::fopencookie(this, "r", functions));
  if (stream) __fsetlocking(stream.get(), FSETLOCKING_BYCALLER);  // only one thread reads
  return stream;
}

CopiedRecords::CopiedRecords() {
  records_.reserve(RawCaptureReader::kMostRecords);
  places_.reserve(RawCaptureReader::kMostRecords);
}

std::span<const RawRecord> CopiedRecords::next(pcap* capture, std::size_t most) noexcept {
  constexpr std::size_t kFull = 512 << 10;
  records_.clear();
  places_.clear();
  used_ = 0;
  while (!ended_ && records_.size() < most && used_ < kFull) {
    pcap_pkthdr* header = nullptr;
    const u_char* bytes = nullptr;
    const int status = pcap_next_ex(capture, &header, &bytes);
    ended_ = status != 1;
    broken_ = ended_ && status != PCAP_ERROR_BREAK;
    if (ended_) break;
    add({nullptr, bytes, header->caplen, header->len}, static_cast<std::int32_t>(header->ts.tv_sec),
        static_cast<std::int32_t>(header->ts.tv_usec));
  }
  for (std::size_t i = 0; i < records_.size(); ++i) {
    records_[i].header = bytes_.data() + places_[i];
    records_[i].data = records_[i].header + sizeof(RecordHeader);
  }
  return records_;
}

void CopiedRecords::add(const RawRecord& record, std::int32_t seconds, std::int32_t microseconds) {
  const RecordHeader header{seconds, microseconds, record.length, record.wire_length};
  const std::size_t end = used_ + sizeof header + record.length;
  if (bytes_.size() < end) bytes_.resize(std::max(end, 2 * bytes_.size()));
  std::memcpy(bytes_.data() + used_, &header, sizeof header);
  if (record.length > 0) std::memcpy(bytes_.data() + used_ + sizeof header, record.data, record.length);
  places_.push_back(used_);
  records_.push_back(record);
  used_ = end;
}

Result<std::unique_ptr<RawCaptureReader>> open_by_libpcap(const std::string& path,
                                                          std::unique_ptr<CaptureWindow> window,
                                                          const ReadControl& control) {
  auto input = std::make_unique<LibpcapInput>();
  input->window = window.get();
  auto pcap = open_stream(input->stream(), path);
  if (control.stopped.load()) return failure({{path, 0, 0}, "stopped before the capture began", "", ""});
  if (!pcap) {
    if (!window->reason().empty()) return failure(not_a_capture(path, window->reason()));
    return tl::unexpected(std::move(pcap.error()));
  }
  return std::make_unique<LibpcapReader>(path, std::move(*pcap), std::move(window), std::move(input), control);
}

}  // namespace penstock::port
