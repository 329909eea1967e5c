// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/raw_capture_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pcap/pcap.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/decompressor.h"
#include "port/capture_window.h"
#include "port/raw_classic_reader.h"
#include "port/raw_libpcap_reader.h"
#include "port/raw_pcapng_reader.h"

namespace penstock::port {

namespace {

using FileHeader = RawCaptureReader::FileHeader;

/// A window onto the pages of the file if it is a regular one, is not compressed, and can be mapped. `first` becomes
/// its first bytes.
std::unique_ptr<MappedWindow> map_file(const std::string& path, FileHeader& first, ReadControl& control) {
  struct stat status {};
  // Opening a pipe to look at it would release its writer, whose bytes would then be lost.
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return nullptr;
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return nullptr;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(first.size()) ||
      ::pread(fd, first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()) ||
      Decompressor::for_input(first)) {
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
  if (std::unique_ptr<MappedWindow> pages = path == "-" ? nullptr : map_file(path, header, control)) {
    if (is_plain(header)) return open_classic(name, header, std::move(pages), control);
    if (auto reader = open_pcapng(name, pages, control)) return reader;
    return open_by_libpcap(name, std::move(pages), control);
  }
  auto source = ByteSource::open(path, control);
  if (!source) return tl::unexpected(std::move(source.error()));
  auto window = std::make_unique<BufferWindow>(std::move(*source));
  const auto first = window->view(header.size());
  if (control.stopped.load()) return failure({{name, 0, 0}, "stopped before the capture began", "", ""});
  if (!is_plain(first)) return open_by_libpcap(name, std::move(window), control);
  std::copy_n(first.begin(), header.size(), header.begin());
  return open_classic(name, header, std::move(window), control);
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
