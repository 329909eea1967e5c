// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_capture_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pcap/pcap.h>
#include <stdio_ext.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "port/capture_window.h"
#include "port/record_finder.h"

namespace penstock::port {

namespace {

using FileHeader = RawCaptureReader::FileHeader;

constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4;
constexpr std::uint32_t kNanoseconds = 0xa1b23c4d;
constexpr std::size_t kMostCaptured = RecordFinder::kMostCaptured;  // libpcap's limit for most link types

struct ClassicHeader {
  std::uint32_t magic;
  std::uint16_t major, minor;
  std::uint32_t zone, digits, snap_length, link_type;
};
static_assert(sizeof(ClassicHeader) == std::tuple_size_v<FileHeader>);

struct RecordHeader {
  std::int32_t seconds, fraction;
  std::uint32_t length, wire_length;
};
static_assert(sizeof(RecordHeader) == RawRecord::kHeaderBytes);

template <typename T>
T load(const std::uint8_t* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

Error not_a_capture(const std::string& path, std::string_view reason) {
  return {{path, 0, 0}, "not a readable capture", std::string(reason), "pcap or pcapng"};
}

/// Opens the capture in `stream` and takes ownership of it.
Result<PcapHandle> open_stream(std::unique_ptr<std::FILE, CloseFile> stream, const std::string& path) {
  if (!stream) return failure(system_error(path, "cannot read", "no memory"));
  char reason[PCAP_ERRBUF_SIZE] = "";
  PcapHandle pcap(pcap_fopen_offline_with_tstamp_precision(stream.get(), PCAP_TSTAMP_PRECISION_MICRO, reason));
  if (!pcap) return failure(not_a_capture(path, reason));
  static_cast<void>(stream.release());
  return pcap;
}

/// libpcap's view of a capture that ends after its header. `header` must outlive it.
Result<PcapHandle> open_header(FileHeader& header, const std::string& path) {
  return open_stream(std::unique_ptr<std::FILE, CloseFile>(::fmemopen(header.data(), header.size(), "rb")), path);
}

/// The most bytes of a packet that libpcap accepts for the link type of the header; 0 if it refuses the header.
std::uint32_t most_captured(FileHeader header) {
  std::memset(header.data() + offsetof(ClassicHeader, snap_length), 0, sizeof(std::uint32_t));  // means the most
  const auto pcap = open_header(header, "");
  return pcap ? static_cast<std::uint32_t>(pcap_snapshot(pcap->get())) : 0;
}

/// Whether libpcap changes nothing in the packets of this capture but the precision of their times.
bool is_plain(std::span<const std::uint8_t> first) {
  FileHeader header{};
  if (first.size() < header.size()) return false;
  std::copy_n(first.begin(), header.size(), header.begin());
  const auto fields = load<ClassicHeader>(header.data());
  if ((fields.magic != kMicroseconds && fields.magic != kNanoseconds) || fields.major != 2 || fields.minor != 4) {
    return false;
  }
  // It corrects lengths of USB packets.
  constexpr std::uint32_t kLinkTypeBits = 0x03ffffff, kUsbLinux = 189, kUsbLinuxMmapped = 220;
  const std::uint32_t link_type = fields.link_type & kLinkTypeBits;
  if (link_type == kUsbLinux || link_type == kUsbLinuxMmapped) return false;
  return most_captured(header) == kMostCaptured;
}

/// Parses the records of a plain capture where they lie.
class PlainReader final : public RawCaptureReader {
 public:
  PlainReader(std::string path, PcapHandle pcap, std::unique_ptr<FileHeader> header,
              std::unique_ptr<CaptureWindow> window, const ReadControl& control)
      : RawCaptureReader(std::move(path), std::move(pcap)),
        header_(std::move(header)),
        window_(std::move(window)),
        control_(&control),
        snap_length_(static_cast<std::uint32_t>(pcap_snapshot(pcap_.get()))),
        nanoseconds_(load<ClassicHeader>(header_->data()).magic == kNanoseconds) {
    records_.reserve(kMostRecords);
    headers_.reserve(kMostRecords);
    window_->advance(header_->size());
  }
  ~PlainReader() override { pcap_.reset(); }  // it reads from the header

  std::span<const RawRecord> next() noexcept override {
    records_.clear();
    headers_.clear();
    if (!reason_.empty() || control_->stopped.load(std::memory_order_relaxed)) return {};
    if (find_records()) return records_;
    std::span<const std::uint8_t> bytes = window_->view(sizeof(RecordHeader));
    std::size_t at = 0;  // in `bytes`
    // Moving the window would invalidate the records that were found in it.
    const auto reaches = [&](std::size_t length) {
      if (bytes.size() - at >= length) return true;
      if (!records_.empty()) return false;
      bytes = window_->view(length);
      return bytes.size() >= length;
    };
    const std::size_t most = window_->is_in_cache() ? kMostRecords : 1;
    while (records_.size() < most) {
      if (!reaches(sizeof(RecordHeader))) {
        if (records_.empty() && !bytes.empty()) truncated("header", sizeof(RecordHeader), bytes.size());
        break;
      }
      const auto header = load<RecordHeader>(bytes.data() + at);
      if (header.length > kMostCaptured) {
        if (records_.empty()) too_long(header.length);
        break;
      }
      if (!reaches(sizeof(RecordHeader) + header.length)) {
        if (records_.empty()) truncated_packet(header.length, bytes.size() - sizeof(RecordHeader));
        break;
      }
      add(header, bytes.data() + at);
      at += sizeof(RecordHeader) + header.length;
    }
    window_->advance(at);
    packets_ += records_.size();
    return records_;
  }

  std::string reason() const override {
    if (!window_->reason().empty()) return window_->reason();
    return control_->stopped.load() ? "" : reason_;
  }
  std::uint64_t size_on_disk() const noexcept override { return window_->size_on_disk(); }
  bool is_live() const noexcept override { return window_->is_live(); }

 private:
  void add(RecordHeader header, const std::uint8_t* at) noexcept {
    const std::uint8_t* written = at;
    if (nanoseconds_ || header.length > snap_length_) {
      header.length = std::min(header.length, snap_length_);
      if (nanoseconds_) header.fraction /= 1000;
      headers_.push_back(header);  // never reallocates
      written = reinterpret_cast<const std::uint8_t*>(&headers_.back());
    }
    records_.push_back({written, at + sizeof(RecordHeader), header.length, header.wire_length});
  }

  /// Takes records from a block that is not in the cache yet. False if the next record must be looked at more closely.
  bool find_records() noexcept {
    if (window_->is_in_cache()) return false;
    if (taken_ == finder_.places().size()) {
      const std::span<const std::uint8_t> bytes = window_->view(RawRecord::kHeaderBytes);
      finder_.find(bytes);
      block_ = bytes.data();
      taken_ = 0;
      window_->advance(finder_.end());
    }
    const auto places = finder_.places().subspan(taken_);
    const std::size_t count = std::min(places.size(), kMostRecords);
    for (std::size_t i = 0; i < count; ++i) add(load<RecordHeader>(block_ + places[i]), block_ + places[i]);
    taken_ += count;
    packets_ += count;
    return count > 0;
  }

  // In libpcap's words.
  void truncated_packet(std::uint32_t length, std::size_t got) {
    truncated("captured", got < snap_length_ ? std::min(length, snap_length_) : length, got);
  }
  void truncated(const char* part, std::size_t wanted, std::size_t got) {
    reason_ = fmt::format("truncated dump file; tried to read {} {} bytes, only got {}", wanted, part, got);
  }
  void too_long(std::uint32_t length) {
    reason_ = length > snap_length_
                  ? fmt::format("invalid packet capture length {}, bigger than snaplen of {}", length, snap_length_)
                  : fmt::format("invalid packet capture length {}, bigger than maximum of {}", length, kMostCaptured);
  }

  std::unique_ptr<FileHeader> header_;
  std::unique_ptr<CaptureWindow> window_;
  const ReadControl* control_;
  RecordFinder finder_;
  const std::uint8_t* block_ = nullptr;  // in which `finder_` has found records
  std::size_t taken_ = 0;                // of them
  std::uint32_t snap_length_;
  bool nanoseconds_;
  std::vector<RawRecord> records_;
  std::vector<RecordHeader> headers_;  // those that differ from the capture's
  std::string reason_;
};

ssize_t read_window(void* cookie, char* into, std::size_t size) {
  CaptureWindow& window = *static_cast<CaptureWindow*>(cookie);
  const std::span<const std::uint8_t> bytes = window.view(1);
  const std::size_t count = std::min(size, bytes.size());
  if (count == 0) return window.reason().empty() ? 0 : -1;
  std::memcpy(into, bytes.data(), count);
  window.advance(count);
  return static_cast<ssize_t>(count);
}

/// Reads any capture through libpcap, and copies its packets.
class LibpcapReader final : public RawCaptureReader {
 public:
  LibpcapReader(std::string path, PcapHandle pcap, std::unique_ptr<CaptureWindow> window, const ReadControl& control)
      : RawCaptureReader(std::move(path), std::move(pcap)), window_(std::move(window)), control_(&control) {
    records_.reserve(kMostRecords);
    places_.reserve(kMostRecords);
  }
  ~LibpcapReader() override { pcap_.reset(); }  // it reads from the window

  std::span<const RawRecord> next() noexcept override {
    records_.clear();
    places_.clear();
    used_ = 0;
    // Reading may block for the next packet, which must not hold up this one.
    const std::size_t most = is_live() ? 1 : kMostRecords;
    while (!ended_ && records_.size() < most && used_ < kFull) {
      pcap_pkthdr* header = nullptr;
      const u_char* bytes = nullptr;
      const int status = pcap_next_ex(pcap_.get(), &header, &bytes);
      ended_ = status != 1;
      broken_ = ended_ && status != PCAP_ERROR_BREAK;
      if (!ended_) add(*header, bytes);
    }
    for (std::size_t i = 0; i < records_.size(); ++i) {
      records_[i].header = bytes_.data() + places_[i];
      records_[i].data = records_[i].header + sizeof(RecordHeader);
    }
    packets_ += records_.size();
    return records_;
  }

  std::string reason() const override {
    if (!window_->reason().empty()) return window_->reason();
    return broken_ && !control_->stopped.load() ? pcap_geterr(pcap_.get()) : "";
  }
  std::uint64_t size_on_disk() const noexcept override { return window_->size_on_disk(); }
  bool is_live() const noexcept override { return window_->is_live(); }

 private:
  static constexpr std::size_t kFull = 512 << 10;

  void add(const pcap_pkthdr& header, const u_char* bytes) {
    const RecordHeader written{static_cast<std::int32_t>(header.ts.tv_sec),
                               static_cast<std::int32_t>(header.ts.tv_usec), header.caplen, header.len};
    const std::size_t end = used_ + sizeof written + header.caplen;
    if (bytes_.size() < end) bytes_.resize(std::max(end, 2 * bytes_.size()));
    std::memcpy(bytes_.data() + used_, &written, sizeof written);
    if (header.caplen > 0) std::memcpy(bytes_.data() + used_ + sizeof written, bytes, header.caplen);
    places_.push_back(used_);
    records_.push_back({nullptr, nullptr, header.caplen, header.len});
    used_ = end;
  }

  std::unique_ptr<CaptureWindow> window_;
  const ReadControl* control_;
  std::vector<RawRecord> records_;
  std::vector<std::size_t> places_;  // of the records in `bytes_`
  std::vector<std::uint8_t> bytes_;
  std::size_t used_ = 0;
  bool ended_ = false, broken_ = false;
};

Result<std::unique_ptr<RawCaptureReader>> open_plain(const std::string& path, const FileHeader& first,
                                                     std::unique_ptr<CaptureWindow> window,
                                                     const ReadControl& control) {
  auto header = std::make_unique<FileHeader>(first);
  auto pcap = open_header(*header, path);
  if (!pcap) return tl::unexpected(std::move(pcap.error()));
  return std::make_unique<PlainReader>(path, std::move(*pcap), std::move(header), std::move(window), control);
}

/// A window onto the file's pages if it is a plain capture that is not compressed, and its pages can be mapped. `first`
/// becomes its header.
std::unique_ptr<CaptureWindow> map_plain(const std::string& path, FileHeader& first, ReadControl& control) {
  struct stat status {};
  // Opening a pipe to look at it would release its writer, whose bytes would then be lost.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(first.size()) ||
      ::pread(fd, first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()) || !is_plain(first)) {
    ::close(fd);
    return nullptr;
  }
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  auto window = std::make_unique<MappedWindow>(fd, static_cast<std::uint64_t>(status.st_size), control);
  if (window->view(first.size()).size() >= first.size()) return window;
  control.bytes_read.store(0, std::memory_order_relaxed);
  return nullptr;
}

}  // namespace

void ClosePcap::operator()(pcap* capture) const noexcept { pcap_close(capture); }

Result<std::unique_ptr<RawCaptureReader>> RawCaptureReader::open(const std::string& path, ReadControl& control) {
  const std::string name = path == "-" ? "standard input" : path;
  FileHeader header{};
  std::unique_ptr<CaptureWindow> window = path == "-" ? nullptr : map_plain(path, header, control);
  if (window) return open_plain(name, header, std::move(window), control);
  auto source = ByteSource::open(path, control);
  if (!source) return tl::unexpected(std::move(source.error()));
  window = std::make_unique<BufferWindow>(std::move(*source));
  const auto first = window->view(std::tuple_size_v<FileHeader>);
  if (control.stopped.load()) return failure({{name, 0, 0}, "stopped before the capture began", "", ""});
  if (is_plain(first)) {
    std::copy_n(first.begin(), header.size(), header.begin());
    return open_plain(name, header, std::move(window), control);
  }

  const cookie_io_functions_t functions{read_window, nullptr, nullptr, nullptr};
  std::unique_ptr<std::FILE, CloseFile> stream(::fopencookie(window.get(), "r", functions));
  if (stream) __fsetlocking(stream.get(), FSETLOCKING_BYCALLER);  // only one thread reads
  auto pcap = open_stream(std::move(stream), name);
  if (control.stopped.load()) return failure({{name, 0, 0}, "stopped before the capture began", "", ""});
  if (!pcap) {
    if (!window->reason().empty()) return failure(not_a_capture(name, window->reason()));
    return tl::unexpected(std::move(pcap.error()));
  }
  return std::make_unique<LibpcapReader>(name, std::move(*pcap), std::move(window), control);
}

Errors RawCaptureReader::errors() const {
  const std::string why = reason();
  if (why.empty()) return {};
  return {system_error(path_, fmt::format("the capture is broken after packet {}", packets_), why)};
}

Result<FileHeader> RawCaptureReader::file_header() const {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const stream = ::open_memstream(&text, &size);
  if (stream == nullptr) return failure(system_error(path_, "cannot read", "no memory"));
  pcap_dumper_t* const dumper = pcap_dump_fopen(pcap_.get(), stream);
  const std::string why = dumper == nullptr ? pcap_geterr(pcap_.get()) : "";
  if (dumper != nullptr) {
    pcap_dump_close(dumper);
  } else {
    std::fclose(stream);
  }
  FileHeader header{};
  const bool is_complete = size == header.size();
  if (is_complete) std::copy_n(text, header.size(), header.begin());
  std::free(text);
  if (!is_complete) return failure(system_error(path_, "its packets cannot be written to a capture", why));
  return header;
}

}  // namespace penstock::port
