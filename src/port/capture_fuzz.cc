// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads arbitrary bytes as a capture file to its end, and touches every byte of every packet. Each packet must reach
// exactly one worker. The packets that have the first packet's link type are written to a classic capture and read
// back.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "port/capture_reader.h"
#include "port/capture_writer.h"
#include "port/worker_chooser.h"

using namespace penstock;
using namespace penstock::port;

namespace {

/// A file in memory that has a path.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : fd_(::memfd_create(name, 0)) {
    if (fd_ < 0) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  void write(const std::uint8_t* data, std::size_t size) {
    if (::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

struct Packet {
  PacketDescriptor descriptor;
  std::vector<std::uint8_t> bytes;
};

std::vector<Packet> read_all(const std::string& path) {
  std::vector<Packet> packets;
  ReadControl control;
  auto captures = CaptureSequence::open({path}, control);
  if (!captures) return packets;
  std::size_t bytes = 0, given = 0;
  WorkerChooser chooser(7);
  const auto give = [&](unsigned worker, const CapturedFrame& frame) noexcept {
    if (worker >= 7) std::abort();
    if (!frame.copy) ++given;
    return true;
  };
  for (CapturedFrame frame; bytes < (4U << 20) && captures->next(frame);) {
    if (frame.wire_length < frame.bytes.size()) std::abort();
    chooser.take(frame, give);
    Packet packet;
    packet.descriptor.timestamp_ns = frame.timestamp_ns;
    packet.descriptor.length = static_cast<std::uint32_t>(frame.bytes.size());
    packet.descriptor.wire_length = frame.wire_length;
    packet.descriptor.link_type = frame.link_type;
    packet.bytes.reserve(frame.bytes.size() + 1);  // a frame pointer must not be null
    packet.bytes.assign(frame.bytes.begin(), frame.bytes.end());
    bytes += packet.bytes.size();
    packets.push_back(std::move(packet));
  }
  chooser.finish(give);
  if (given != packets.size()) std::abort();
  return packets;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemoryFile in("in");
  in.write(data, size);
  std::vector<Packet> packets = read_all(in.path());
  if (packets.empty()) return 0;
  const LinkType first = packets.front().descriptor.link_type;
  std::erase_if(packets, [&](const Packet& packet) { return packet.descriptor.link_type != first; });

  MemoryFile out("out");
  auto writer = CaptureWriter::open(out.path(), Precision::nanoseconds);
  if (!writer) std::abort();
  (*writer)->begin();
  {
    CaptureWriter::Buffer buffer(**writer);
    std::vector<PacketView> views;
    for (Packet& packet : packets) views.push_back({packet.bytes.data(), &packet.descriptor});
    if (buffer.add(views) != packets.size()) std::abort();
    if (buffer.flush().packets != 0) std::abort();
  }
  const bool too_late = std::any_of(packets.begin(), packets.end(), [](const Packet& packet) {
    return packet.descriptor.timestamp_ns / 1'000'000'000 > 0xffffffff;  // after 2106: not representable
  });
  if ((*writer)->close().empty() == too_late) std::abort();
  const std::vector<Packet> again = read_all(out.path());
  if (again.size() != packets.size()) std::abort();
  for (std::size_t i = 0; i < packets.size(); ++i) {
    if (again[i].bytes != packets[i].bytes || again[i].descriptor.wire_length != packets[i].descriptor.wire_length ||
        (!too_late && again[i].descriptor.timestamp_ns != packets[i].descriptor.timestamp_ns)) {
      std::abort();
    }
  }
  return 0;
}
