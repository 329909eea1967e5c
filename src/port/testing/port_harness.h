// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of ports: a temporary folder, ports made from chain-file parameters, and functions that read and
// send packets.

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "packet/batch.h"
#include "port/catalog.h"

namespace penstock::port::testing {

using Bytes = std::vector<std::uint8_t>;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "penstock-port-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string operator/(std::string_view name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}
inline Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

/// A packet that is not in a batch.
struct Captured {
  std::uint64_t timestamp_ns = 0;
  std::uint32_t wire_length = 0;
  LinkType link_type = LinkType::ethernet;
  Bytes bytes;
  friend bool operator==(const Captured&, const Captured&) = default;
};
inline void PrintTo(const Captured& packet, std::ostream* out) {
  *out << packet.bytes.size() << " of " << packet.wire_length << " bytes at " << packet.timestamp_ns << ", link type "
       << static_cast<int>(packet.link_type);
}

/// A batch that owns its memory.
class OwnBatch {
 public:
  explicit OwnBatch(std::size_t bytes = 1 << 20, std::size_t packets = 4096, FrameRoom room = {})
      : bytes_(bytes), descriptors_(packets), batch_(bytes_, descriptors_, room) {}
  Batch& operator*() noexcept { return batch_; }
  Batch* operator->() noexcept { return &batch_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<PacketDescriptor> descriptors_;
  Batch batch_;
};

using Given = std::pair<std::string, std::vector<std::string>>;

inline Result<Parameters> read_parameters(const PortKind& kind, const std::vector<Given>& given) {
  std::vector<RawParameter> raw;
  for (const auto& [name, items] : given) {
    const auto shape = items.size() == 1 ? RawParameter::Shape::scalar : RawParameter::Shape::list;
    raw.push_back({name, {"chain.yaml", 1, 1}, {"chain.yaml", 2, 1}, items, shape, ""});
  }
  return Parameters::read(kind.parameters, std::move(raw), {"chain.yaml", 1, 1});
}

inline Result<std::unique_ptr<Port>> make_port(std::string_view kind_name, const std::vector<Given>& given,
                                               PortIndex index = 0) {
  const PortKind* kind = find_kind(kind_name);
  if (kind == nullptr) return failure({{}, "no such kind", std::string(kind_name), ""});
  auto parameters = read_parameters(*kind, given);
  if (!parameters) return tl::unexpected(std::move(parameters.error()));
  return kind->make(*parameters, index);
}

inline std::unique_ptr<Port> must_make(std::string_view kind, const std::vector<Given>& given, PortIndex index = 0) {
  auto port = make_port(kind, given, index);
  EXPECT_TRUE(port) << to_string(port.error());
  return std::move(*port);
}

inline void take(Batch& batch, std::vector<Captured>& into) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const PacketView view = batch.view(i);
    into.push_back({view.packet->timestamp_ns, view.packet->wire_length, view.packet->link_type,
                    Bytes(view.frame, view.frame + view.packet->length)});
  }
}

/// Polls all queues of an opened port until they end. Returns each worker's packets, except for copies.
inline std::vector<std::vector<Captured>> drain(Port& port, unsigned workers, OwnBatch&& batch = OwnBatch()) {
  std::vector<std::vector<Captured>> packets(workers);
  std::vector<bool> ended(workers);
  for (unsigned running = workers; running > 0;) {
    for (unsigned i = 0; i < workers; ++i) {
      if (ended[i]) continue;
      batch->reset(0);
      const RxStatus status = port.rx(i)->poll(*batch);
      if (status != RxStatus::copy) take(*batch, packets[i]);
      if (status == RxStatus::idle) std::this_thread::yield();
      if (status != RxStatus::end) continue;
      ended[i] = true;
      --running;
    }
  }
  return packets;
}

/// The packets that one worker reads from captures, and the errors at the end.
struct ReadBack {
  std::vector<Captured> packets;
  Errors errors;
};
inline ReadBack read_captures(std::vector<std::string> paths) {
  auto port = make_port("pcap", {{"read", std::move(paths)}});
  if (!port) return {{}, port.error()};
  if (auto opened = (*port)->open(1); !opened) return {{}, opened.error()};
  ReadBack result;
  result.packets = drain(**port, 1).front();
  result.errors = (*port)->close();
  return result;
}

/// Sends and flushes copies of `packets`, and returns how many were accepted. Expects that the others are marked as
/// `TxQueue::send` says, and that no packets are lost unless the caller passes `lost_of_them`.
inline std::size_t send(TxQueue& queue, std::vector<Captured>& packets, Lost* lost_of_them = nullptr) {
  std::vector<PacketDescriptor> descriptors(packets.size());
  std::vector<PacketView> views;
  for (std::size_t i = 0; i < packets.size(); ++i) {
    descriptors[i].timestamp_ns = packets[i].timestamp_ns;
    descriptors[i].length = static_cast<std::uint32_t>(packets[i].bytes.size());
    descriptors[i].wire_length = packets[i].wire_length;
    descriptors[i].link_type = packets[i].link_type;
    packets[i].bytes.reserve(1);  // a frame pointer must not be null
    views.push_back({packets[i].bytes.data(), &descriptors[i]});
  }
  const std::size_t taken = queue.send(views);
  const Lost lost = queue.flush();
  if (lost_of_them != nullptr) {
    *lost_of_them = lost;
  } else {
    EXPECT_EQ(lost.packets, 0U);
  }
  const auto left_alive = std::count_if(descriptors.begin(), descriptors.end(),
                                        [](const PacketDescriptor& packet) { return packet.verdict.alive(); });
  EXPECT_EQ(taken, static_cast<std::size_t>(left_alive)) << "what is refused is marked, and nothing else";
  return taken;
}

struct Written {
  std::size_t taken = 0;
  Errors errors;
};
inline Written write_capture(const std::string& path, std::vector<Captured> packets,
                             const std::string& precision = "auto") {
  auto port = must_make("pcap", {{"write", {path}}, {"precision", {precision}}});
  if (auto opened = port->open(1); !opened) return {0, opened.error()};
  if (auto started = port->start(); !started) return {0, started.error()};
  Written result;
  result.taken = send(*port->tx(0), packets);
  result.errors = port->close();
  return result;
}

}  // namespace penstock::port::testing
