// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests the access check itself, and the fields that the layout depends on.

#include "property/access_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace penstock::property {
namespace {

/// Whether the parser passed all headers of the packet that it knows, so that no header byte is `payload`.
bool headers_are_whole(const Packet& packet) {
  const PacketLayout& layout = packet.descriptor.layout;
  constexpr unsigned kBroken = PacketLayout::kMalformed | PacketLayout::kMalformedTransport | PacketLayout::kTruncated;
  return layout.has(PacketLayout::kNetworkHeader) && (layout.flags & kBroken) == 0;
}

TEST(ParsedFields, AreAllThatTheLayoutDependsOn) {
  RandomPackets random(9);
  std::size_t whole = 0;
  for (int i = 0; i < 50'000; ++i) {
    Packet packet = random.next();
    if (!headers_are_whole(packet)) continue;
    ++whole;
    Packet other = packet;
    scramble(other, FieldSet::all() - kParsedFields, random);
    PacketLayout again =
        parse(other.bytes.data(), other.descriptor.length, other.descriptor.wire_length, other.descriptor.link_type);
    // The contents of a tunnel also depend on ports and payload, for which there are separate fields.
    again.tunnel = packet.descriptor.layout.tunnel;
    again.inner_offset = packet.descriptor.layout.inner_offset;
    ASSERT_TRUE(again == packet.descriptor.layout) << described(packet) << "\nand " << described(other);
  }
  EXPECT_GT(whole, 10'000U);
}

/// Functions that violate their access.
class Deciding final : public StageRun {
 public:
  explicit Deciding(void (*decide)(PacketView)) : decide_(decide) {}
  void process(std::span<PacketView> packets, std::span<std::byte* const> /*findings*/,
               std::size_t /*first*/) override {
    for (const PacketView& packet : packets) decide_(packet);
  }

 private:
  void (*decide_)(PacketView);
};

std::optional<std::string> violation_of(Access access, void (*decide)(PacketView)) {
  RandomPackets random(10);
  std::vector<Packet> packets;
  for (int i = 0; i < 500; ++i) packets.push_back(random.next());
  return violation([decide] { return std::make_unique<Deciding>(decide); }, access, packets, random);
}

TEST(AccessCheck, PassesAnHonestFunction) {
  constexpr FieldSet kRead{Field::ipv4_ttl, Field::verdict, Field::mark};
  const auto found = violation_of({kParsedFields | kRead, {Field::verdict, Field::mark}}, [](PacketView packet) {
    if (!packet.layout().has(PacketLayout::kNetworkHeader)) return;
    if (packet.layout().network != NetworkLayer::ipv4) return;
    if (packet.ipv4().ttl < 10) packet.packet->verdict = Verdict::drop(0);
    packet.packet->mark = packet.ipv4().ttl;
  });
  EXPECT_FALSE(found) << *found;
}

TEST(AccessCheck, PassesAFunctionThatLeavesTheLayoutAlone) {
  const auto found = violation_of({{Field::mark}, {Field::mark, Field::verdict}}, [](PacketView packet) {
    packet.packet->verdict = Verdict::forward(static_cast<PortIndex>(packet.packet->mark++ % 2));
  });
  EXPECT_FALSE(found) << *found;
}

TEST(AccessCheck, FindsAFunctionThatUsesTheLayoutWithoutReadingAllThatItComesFrom) {
  constexpr FieldSet kVerdict{Field::verdict};
  const auto by_network = [](PacketView packet) {
    packet.packet->verdict = packet.layout().network == NetworkLayer::ipv4 ? Verdict::forward(1) : Verdict::forward(2);
  };
  EXPECT_FALSE(violation_of({kParsedFields, kVerdict}, by_network));
  EXPECT_TRUE(violation_of({{}, kVerdict}, by_network));
  for (unsigned f = 0; f < kFieldCount; ++f) {
    const FieldSet one{static_cast<Field>(f)};
    if ((kParsedFields & one).empty()) continue;
    EXPECT_TRUE(violation_of({FieldSet::all() - one, kVerdict}, by_network)) << name(static_cast<Field>(f));
  }
  // The layout's tunnel needs more: the ports, and what follows the transport header.
  const auto by_tunnel = [](PacketView packet) {
    packet.packet->verdict = packet.layout().tunnel != Tunnel::none ? Verdict::forward(1) : Verdict::forward(2);
  };
  EXPECT_TRUE(violation_of({kParsedFields, kVerdict}, by_tunnel));
  EXPECT_FALSE(violation_of({kParsedFields | kTunnelFields, kVerdict}, by_tunnel));
}

TEST(AccessCheck, FindsAFunctionThatLiesAboutWhatItReads) {
  constexpr FieldSet kVerdict{Field::verdict};
  EXPECT_TRUE(violation_of({{}, kVerdict}, [](PacketView packet) {
    packet.packet->verdict = packet.packet->mark % 2 == 0 ? Verdict::forward(1) : Verdict::forward(2);
  }));
  EXPECT_TRUE(violation_of({{}, kVerdict}, [](PacketView packet) {
    packet.packet->verdict = packet.packet->in_port == 1 ? Verdict::forward(1) : Verdict::forward(2);
  }));
  EXPECT_TRUE(violation_of({{}, kVerdict}, [](PacketView packet) {
    packet.packet->verdict = packet.packet->timestamp_ns % 3 == 0 ? Verdict::forward(1) : Verdict::forward(2);
  }));
  EXPECT_TRUE(violation_of({FieldSet::all() - FieldSet{Field::payload}, kVerdict}, [](PacketView packet) {
    const bool odd = packet.length() > 0 && packet.frame[packet.layout().end - 1] % 2 == 1;
    packet.packet->verdict = odd ? Verdict::drop(0) : Verdict::forward();
  }));
  EXPECT_TRUE(violation_of({{}, kVerdict}, [](PacketView packet) {
    if (packet.length() == 60) packet.packet->verdict = Verdict::drop(0);
  })) << "a verdict that some packets keep is read";
}

TEST(AccessCheck, FindsAFunctionThatLiesAboutWhatItWrites) {
  EXPECT_TRUE(violation_of({FieldSet::all(), {}}, [](PacketView packet) { ++packet.packet->mark; }));
  EXPECT_TRUE(violation_of({FieldSet::all(), {}}, [](PacketView packet) { packet.packet->timestamp_ns = 1; }));
  EXPECT_TRUE(
      violation_of({FieldSet::all(), {}}, [](PacketView packet) { packet.packet->verdict = Verdict::drop(1); }));
  EXPECT_TRUE(violation_of({FieldSet::all(), {Field::ipv4_ttl}}, [](PacketView packet) {
    if (packet.layout().network == NetworkLayer::ipv4 && packet.layout().has(PacketLayout::kNetworkHeader)) {
      packet.ipv4().tos ^= 1;
    }
  }));
  EXPECT_TRUE(violation_of({FieldSet::all(), FieldSet::all() - FieldSet{Field::trailer, Field::frame_shape}},
                           [](PacketView packet) {
                             if (packet.length() > packet.layout().end) packet.frame[packet.length() - 1] ^= 1;
                           }));
}

/// A run that changes packets in any way.
class Changing : public StageRun {
 public:
  FrameRoom room() const override { return {16, 8}; }
  std::size_t findings_bytes() const override { return 1; }
  void process(std::span<PacketView> packets, std::span<std::byte* const> findings, std::size_t /*first*/) override {
    for (std::size_t i = 0; i < packets.size(); ++i) change(packets[i], *findings[i]);
  }
  std::string end() override { return output_; }

 protected:
  virtual void change(PacketView& packet, std::byte& finding) = 0;
  std::string output_;
};

template <typename Run>
std::optional<std::string> violation_of(Access access) {
  RandomPackets random(12);
  std::vector<Packet> packets;
  for (int i = 0; i < 500; ++i) packets.push_back(random.next());
  return violation([] { return std::make_unique<Run>(); }, access, packets, random);
}

void grow(PacketView& packet, std::uint32_t head, std::uint32_t tail) {
  packet.frame -= head;
  packet.packet->offset -= head;
  packet.packet->length += head + tail;
  std::fill_n(packet.frame, head, std::uint8_t{1});
  std::fill_n(packet.frame + packet.length() - tail, tail, std::uint8_t{2});
}

TEST(AccessCheck, PassesAFunctionThatGrowsFramesInTheirRoom) {
  class Growing final : public Changing {
    void change(PacketView& packet, std::byte& /*finding*/) override { grow(packet, 16, 8); }
  };
  const FieldSet metadata{Field::timestamp, Field::in_port, Field::mark, Field::flow_hash, Field::wire_length};
  const auto found = violation_of<Growing>({FieldSet::all() - metadata, FieldSet::all() - metadata});
  EXPECT_FALSE(found) << *found;
  EXPECT_TRUE(violation_of<Growing>({FieldSet::all(), {Field::payload}})) << "the frame's shape is not written";
}

TEST(AccessCheck, FindsAFunctionThatLeavesTheRoomOfItsFrames) {
  class Moving final : public Changing {
    void change(PacketView& packet, std::byte& /*finding*/) override { grow(packet, 17, 0); }
  };
  class Overrunning final : public Changing {
    void change(PacketView& packet, std::byte& /*finding*/) override { packet.frame[packet.length() + 8] = 1; }
  };
  EXPECT_TRUE(violation_of<Moving>({FieldSet::all(), FieldSet::all()}));
  EXPECT_TRUE(violation_of<Overrunning>({FieldSet::all(), FieldSet::all()}));
}

TEST(AccessCheck, FindsResultsThatDependOnFieldsThatAreNotRead) {
  class Finding final : public Changing {
    void change(PacketView& packet, std::byte& finding) override {
      finding = static_cast<std::byte>(packet.packet->mark);
    }
  };
  class Telling final : public Changing {
    void change(PacketView& packet, std::byte& /*finding*/) override {
      output_ += std::to_string(packet.length()) + '\n';
    }
  };
  EXPECT_FALSE(violation_of<Finding>({{Field::mark}, {}}));
  EXPECT_TRUE(violation_of<Finding>({FieldSet::all() - FieldSet{Field::mark}, {}}));
  EXPECT_FALSE(violation_of<Telling>({{Field::frame_shape}, {}}));
  EXPECT_TRUE(violation_of<Telling>({FieldSet::all() - FieldSet{Field::frame_shape}, {}}));
}

}  // namespace
}  // namespace penstock::property
