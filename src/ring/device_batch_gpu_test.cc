// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the device finds in packets against what the host finds: the same, byte for byte.

#include "ring/device_batch.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gpu/memory.h"
#include "gpu/stream.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"
#include "port/capture_reader.h"

namespace penstock::ring {
namespace {

using testing::Bytes;

constexpr LinkType kLinkTypes[] = {LinkType::ethernet, LinkType::raw_ip,    LinkType::null_host,  LinkType::loop,
                                   LinkType::ppp,      LinkType::linux_sll, LinkType::linux_sll2, LinkType::cisco_hdlc};

/// A frame, of which the wire may have had more.
struct Frame {
  Bytes bytes;
  std::uint32_t wire_length;
  LinkType link_type;
};

/// Sound packets of every kind and link type, and damaged and cut ones: random bytes alone seldom get past the first
/// header.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }

  Frame frame() {
    const LinkType link = kLinkTypes[below(std::size(kLinkTypes))];
    const bool is_v4 = below(2) == 0;
    auto builder = link_header(link, is_v4);
    network(builder, is_v4);
    transport(builder);
    Frame frame{builder.raw(bytes(payload_length())).bytes(), 0, link};
    frame.bytes.resize(frame.bytes.size() + below(8));
    for (std::uint32_t n = below(4); n > 0; --n) {
      const std::size_t headers = std::min<std::size_t>(frame.bytes.size(), 100);
      frame.bytes[below(headers)] = static_cast<std::uint8_t>(random_());
    }
    frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
    if (below(4) == 0) frame.bytes.resize(below(std::min<std::size_t>(frame.bytes.size(), 120)));
    if (below(16) == 0) frame.wire_length = static_cast<std::uint32_t>(frame.bytes.size());
    return frame;
  }

 private:
  Bytes bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random_());
    return bytes;
  }
  std::size_t payload_length() { return below(50) == 0 ? 1500 + below(64000) : below(200); }

  testing::PacketBuilder link_header(LinkType link, bool is_v4) {
    auto builder = testing::packet();
    const auto big = static_cast<std::uint8_t>(is_v4 ? 0x08 : 0x86);
    const auto little = static_cast<std::uint8_t>(is_v4 ? 0x00 : 0xdd);
    switch (link) {
      case LinkType::ethernet:
        builder.eth();
        for (std::uint32_t n = below(3); n > 0; --n) builder.vlan(static_cast<std::uint16_t>(random_()));
        break;
      case LinkType::raw_ip: break;
      case LinkType::null_host: builder.raw({static_cast<std::uint8_t>(is_v4 ? 2 : 30), 0, 0, 0}); break;
      case LinkType::loop: builder.raw({0, 0, 0, static_cast<std::uint8_t>(is_v4 ? 2 : 10)}); break;
      case LinkType::ppp: builder.raw({0xff, 0x03, 0, static_cast<std::uint8_t>(is_v4 ? 0x21 : 0x57)}); break;
      case LinkType::linux_sll: builder.raw(Bytes(14)).raw({big, little}); break;
      case LinkType::linux_sll2: builder.raw({big, little}).raw(Bytes(18)); break;
      case LinkType::cisco_hdlc: builder.raw({0x0f, 0, big, little}); break;
    }
    return builder;
  }
  void network(testing::PacketBuilder& builder, bool is_v4) {
    const auto host = [this] { return std::to_string(below(250)); };
    if (is_v4) {
      const auto fragment = static_cast<std::uint16_t>(below(8) == 0 ? random_() : 0);
      builder.ipv4("10.0.0." + host(), "192.0.2." + host(), 64, Bytes(below(3) * 4, 1), fragment);
      return;
    }
    builder.ipv6("2001:db8::" + host(), "fe80::" + host());
    constexpr std::uint8_t kExtensions[] = {ip_protocol::kHopByHop, ip_protocol::kRouting, ip_protocol::kAh,
                                            ip_protocol::kDestinationOptions};
    for (std::uint32_t n = below(4); n > 0; --n) builder.extension(kExtensions[below(4)], 2);
    if (below(8) == 0) builder.fragment6(static_cast<std::uint16_t>(below(2) * 8 + below(2)));
  }
  void transport(testing::PacketBuilder& builder) {
    const auto port = static_cast<std::uint16_t>(random_());
    switch (below(8)) {
      case 0: builder.udp(port, 53); break;
      case 1: builder.udp(port, VxlanHeader::kPort).raw({8, 0, 0, 0, 0, 0, 1, 0}); break;
      case 2: builder.icmp(8); break;
      case 3: builder.sctp(port, 36412); break;
      case 4: builder.protocol(ip_protocol::kGre).raw({0x20, 0, 8, 0, 0, 0, 0, 7}); break;
      case 5: builder.protocol(ip_protocol::kEsp); break;
      default: builder.tcp(port, 443, TcpHeader::kAck, Bytes(below(4) * 4, 1)); break;
    }
  }

  std::mt19937_64 random_;
};

constexpr std::size_t kBatchBytes = std::size_t{4} << 20;
constexpr std::size_t kBatchPackets = 4096;

/// A host batch whose frames are pinned, its twin, and the stream that the twin's work goes to.
class Twins {
 public:
  Batch& host() { return host_; }

  bool append(const Frame& frame) {
    return host_.append(frame.bytes, {.wire_length = frame.wire_length, .link_type = frame.link_type});
  }

  void enqueue() {
    ASSERT_TRUE(device_.upload(host_, stream_) && device_.parse(stream_) && device_.download(stream_));
    ASSERT_TRUE(done_.record(stream_));
  }

  /// Waits as a worker does, and compares all packets. Counts those whose transport header was found into `whole`.
  void expect_what_the_host_finds(std::size_t* whole = nullptr) {
    while (done_.progress() == gpu::Progress::kRunning) continue;
    ASSERT_EQ(done_.progress(), gpu::Progress::kDone);
    ASSERT_EQ(device_.layouts().size(), host_.size());
    ASSERT_EQ(device_.flow_hashes().size(), host_.size());
    for (std::size_t i = 0; i < host_.size(); ++i) {
      const PacketView packet = host_.view(i);
      parse(packet);
      ASSERT_EQ(std::memcmp(&device_.layouts()[i], &packet.layout(), sizeof(PacketLayout)), 0) << "packet " << i;
      ASSERT_EQ(device_.flow_hashes()[i], flow_hash(packet)) << "packet " << i;
      if (whole != nullptr) *whole += packet.layout().has(PacketLayout::kTransportHeader) ? 1 : 0;
    }
  }

 private:
  gpu::PinnedBuffer<std::uint8_t> bytes_{kBatchBytes};
  std::vector<PacketDescriptor> descriptors_{kBatchPackets};
  Batch host_{bytes_.span(), descriptors_, {16, 8}};
  DeviceBatch device_{kBatchBytes, kBatchPackets};
  gpu::Stream stream_;
  gpu::Event done_;
};

TEST(DeviceBatch, FindsWhatTheHostFindsInBatchesOfEverySize) {
  Draw draw(1);
  Twins twins;
  for (const std::size_t size : {0U, 1U, 31U, 32U, 33U, 255U, 256U, 257U, 1000U}) {
    twins.host().reset(0);
    while (twins.host().size() < size) ASSERT_TRUE(twins.append(draw.frame()));
    twins.enqueue();
    twins.expect_what_the_host_finds();
  }
}

TEST(DeviceBatch, FindsWhatTheHostFindsInAFullBatch) {
  Twins twins;
  const Frame small{testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).padded_to(60).bytes(), 60, {}};
  while (twins.append(small)) continue;
  EXPECT_EQ(twins.host().size(), kBatchPackets);
  twins.enqueue();
  std::size_t whole = 0;
  twins.expect_what_the_host_finds(&whole);
  EXPECT_EQ(whole, kBatchPackets);

  // Full of bytes, with frames of the greatest length that a capture holds, and the last one at the very end.
  twins.host().reset(0);
  Frame jumbo{testing::packet().eth().ipv4("10.0.0.1", "10.0.0.2").tcp(1, 2).raw(Bytes(65000)).bytes(), 65054, {}};
  while (twins.append(jumbo)) continue;
  jumbo.bytes.resize(kBatchBytes - twins.host().used_bytes() - 24);
  ASSERT_TRUE(twins.append(jumbo));
  EXPECT_EQ(twins.host().used_bytes(), kBatchBytes);
  twins.enqueue();
  twins.expect_what_the_host_finds();
}

TEST(DeviceBatch, IsUsedAgainAndAgain) {
  Draw draw(2);
  Twins twins;
  std::size_t packets = 0;
  std::size_t whole = 0;
  for (int round = 0; round < 100; ++round) {
    twins.host().reset(0);
    for (std::uint32_t n = draw.below(2000); n > 0 && twins.append(draw.frame()); --n) ++packets;
    twins.enqueue();
    twins.expect_what_the_host_finds(&whole);
  }
  EXPECT_GT(whole, packets / 4) << "most packets were damaged before they had anything to find";
  EXPECT_LT(whole, packets);
}

TEST(DeviceBatch, SeveralAreInFlightOnSeveralStreams) {
  Draw draw(3);
  std::vector<std::unique_ptr<Twins>> in_flight;
  for (int i = 0; i < 8; ++i) in_flight.push_back(std::make_unique<Twins>());
  for (int round = 0; round < 4; ++round) {
    for (const auto& twins : in_flight) {
      twins->host().reset(0);
      for (std::uint32_t n = 200 + draw.below(1000); n > 0 && twins->append(draw.frame()); --n) continue;
    }
    for (const auto& twins : in_flight) twins->enqueue();
    for (const auto& twins : in_flight) twins->expect_what_the_host_finds();
  }
}

/// The captures of $PENSTOCK_CORPUS, and the examples of the bundle or source tree that this program is in.
std::vector<std::string> captures() {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path program = fs::read_symlink("/proc/self/exe", none);
  std::vector<fs::path> folders{program.parent_path().parent_path() / "examples", PENSTOCK_SOURCE_DIR "/examples"};
  if (const char* corpus = std::getenv("PENSTOCK_CORPUS")) folders.emplace_back(fs::path(corpus) / "captures");
  std::vector<std::string> paths;
  for (const fs::path& folder : folders) {
    if (!fs::is_directory(folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.path().filename().string().find(".pcap") != std::string::npos) paths.push_back(entry.path().string());
    }
  }
  return paths;
}

TEST(DeviceBatch, FindsWhatTheHostFindsInCaptures) {
  const auto paths = captures();
  if (paths.empty()) GTEST_SKIP() << "no captures; PENSTOCK_CORPUS names a folder of them";
  Twins twins;
  std::size_t packets = 0;
  std::size_t whole = 0;
  const auto compare = [&] {
    packets += twins.host().size();
    twins.enqueue();
    twins.expect_what_the_host_finds(&whole);
    twins.host().reset(0);
  };
  port::ReadControl control;
  for (const std::string& path : paths) {
    auto reader = port::CaptureReader::open(path, control);
    if (!reader) continue;  // of a link type that carries no IP, or broken on purpose
    port::CapturedFrame captured;
    while (reader->next(captured) == port::CaptureReader::Status::packet) {
      const Frame frame{{captured.bytes.begin(), captured.bytes.end()}, captured.wire_length, captured.link_type};
      if (twins.append(frame)) continue;
      ASSERT_NO_FATAL_FAILURE(compare()) << path;
      ASSERT_TRUE(twins.append(frame)) << path;
    }
  }
  ASSERT_NO_FATAL_FAILURE(compare());
  std::printf("%zu captures, %zu packets, %zu of them with a whole transport header\n", paths.size(), packets, whole);
  EXPECT_GT(whole, 0U);
}

}  // namespace
}  // namespace penstock::ring
