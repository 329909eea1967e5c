// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "packet/testing/packet_builder.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using penstock::testing::packet;
using penstock::testing::slow_checksum;
using testing::Bytes;
using testing::Captured;
using testing::drain;
using testing::Given;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_port;
using testing::must_make;
using testing::OwnBatch;
using ::testing::SizeIs;
using testing::TemporaryFolder;
using testing::write_capture;

std::vector<Captured> generate(const std::vector<Given>& given, unsigned workers = 1) {
  auto port = must_make("generator", given);
  const auto opened = port->open(workers);
  EXPECT_TRUE(opened) << to_string(opened.error());
  std::vector<Captured> all;
  for (const auto& of_worker : drain(*port, workers)) all.insert(all.end(), of_worker.begin(), of_worker.end());
  EXPECT_THAT(port->close(), IsEmpty());
  return all;
}

std::string error_of(const std::vector<Given>& given) {
  auto port = make_port("generator", given);
  if (!port) return to_string(port.error());
  const auto opened = (*port)->open(1);
  return opened ? "" : to_string(opened.error());
}

/// Decodes a generated frame according to the RFCs, without using any of our code.
struct Decoded {
  std::string source, destination;  // raw address bytes
  unsigned source_port = 0, destination_port = 0, protocol = 0, vlan = 0, tcp_sequence = 0;
  std::string payload;
  bool checksums_right = true, lengths_right = true;

  explicit Decoded(const Bytes& frame) {
    const auto be16 = [&](std::size_t at) { return frame.at(at) * 256U + frame.at(at + 1); };
    const auto text = [&](std::size_t at, std::size_t length) {
      return std::string(frame.begin() + static_cast<std::ptrdiff_t>(at),
                         frame.begin() + static_cast<std::ptrdiff_t>(at + length));
    };
    std::size_t ip = 14;
    unsigned type = be16(12);
    if (type == 0x8100) {
      vlan = be16(14);
      type = be16(16);
      ip = 18;
    }
    const bool v4 = type == 0x0800;
    lengths_right = v4 ? frame.at(ip) == 0x45 && be16(ip + 2) == frame.size() - ip
                       : type == 0x86dd && frame.at(ip) >> 4 == 6 && be16(ip + 4) == frame.size() - ip - 40;
    protocol = frame.at(ip + (v4 ? 9 : 6));
    const std::size_t width = v4 ? 4 : 16;
    const std::size_t addresses = ip + (v4 ? 12 : 8);
    source = text(addresses, width);
    destination = text(addresses + width, width);
    const std::size_t l4 = addresses + 2 * width;
    source_port = be16(l4);
    destination_port = be16(l4 + 2);
    std::uint64_t pseudo = protocol + frame.size() - l4;
    for (std::size_t i = addresses; i < l4; i += 2) pseudo += be16(i);
    const bool tcp = protocol == 6;
    if (tcp) tcp_sequence = be16(l4 + 4) << 16 | be16(l4 + 6);
    if (!tcp) lengths_right = lengths_right && be16(l4 + 4) == frame.size() - l4;
    const bool none = !tcp && be16(l4 + 6) == 0;  // 0 means "no checksum"
    checksums_right =
        !none && slow_checksum(frame, l4, frame.size(), pseudo) == 0 && (!v4 || slow_checksum(frame, ip, ip + 20) == 0);
    const std::size_t header = tcp ? (frame.at(l4 + 12) >> 4) * 4U : 8U;
    payload = text(l4 + header, frame.size() - l4 - header);
  }
  [[nodiscard]] auto flow() const { return std::tuple(source, destination, source_port, destination_port, protocol); }
};

TEST(Generator, MakesValidPacketsOfEveryShape) {
  for (const char* network : {"ipv4", "ipv6"}) {
    for (const char* transport : {"udp", "tcp"}) {
      for (const char* payload : {"zero", "random", "http"}) {
        for (const char* size : {"86", "87", "1518", "9000", "imix"}) {
          for (const bool vlan : {false, true}) {
            std::vector<Given> given{{"network", {network}}, {"transport", {transport}}, {"payload", {payload}},
                                     {"size", {size}},       {"flows", {"7"}},           {"packets", {"150"}}};
            if (vlan) given.push_back({"vlan", {"5"}});
            const auto packets = generate(given);
            ASSERT_THAT(packets, SizeIs(150));
            for (const Captured& made : packets) {
              const Decoded decoded(made.bytes);
              ASSERT_TRUE(decoded.lengths_right) << network << transport << payload << size << vlan;
              ASSERT_TRUE(decoded.checksums_right) << network << transport << payload << size << vlan;
              EXPECT_EQ(decoded.vlan, vlan ? 5U : 0U);
              EXPECT_EQ(decoded.protocol, transport == std::string("tcp") ? 6U : 17U);
              EXPECT_EQ(made.wire_length, made.bytes.size());
            }
          }
        }
      }
    }
  }
}

TEST(Generator, NeverWritesTheUdpChecksumThatMeansNone) {
  // With this many packets, some have a checksum of 0.
  for (const Captured& made : generate({{"flows", {"200000"}}, {"packets", {"200000"}}})) {
    ASSERT_TRUE(Decoded(made.bytes).checksums_right);
  }
}

TEST(Generator, IncludesTheCheckSequenceInTheFrameSize) {
  for (const unsigned size : {64U, 65U, 1000U, 9000U}) {
    for (const Captured& made : generate({{"size", {std::to_string(size)}}, {"packets", {"3"}}})) {
      EXPECT_EQ(made.bytes.size(), size - 4);
    }
  }
}

TEST(Generator, MixesSizesExactly7To4To1AndEachFlowGetsAllOfThem) {
  // Without the shift between rounds, each of 12 flows (and, every round, of 11) would get the same size every time.
  for (const char* flows : {"1", "11", "12", "24", "1000"}) {
    std::map<std::size_t, unsigned> of_size;
    std::map<unsigned, std::set<std::size_t>> sizes_of_flow;
    const auto packets = generate({{"size", {"imix"}}, {"flows", {flows}}, {"packets", {"12000"}}});
    for (const Captured& made : packets) {
      ++of_size[made.bytes.size() + 4];
      sizes_of_flow[Decoded(made.bytes).source_port].insert(made.bytes.size());
    }
    EXPECT_EQ(of_size[64], 7000U) << flows;
    EXPECT_EQ(of_size[594], 4000U) << flows;
    EXPECT_EQ(of_size[1518], 1000U) << flows;
    if (flows == std::string("1000")) continue;  // only 12 packets of each flow
    for (const auto& [port, sizes] : sizes_of_flow) EXPECT_THAT(sizes, SizeIs(3)) << flows << " flows, port " << port;
  }
}

TEST(Generator, MakesExactlyTheGivenFlowsWithinTheirRanges) {
  const auto packets = generate({{"flows", {"5000"}},
                                 {"packets", {"12500"}},
                                 {"source", {"10.1.0.0/16"}},
                                 {"destination", {"192.0.2.64/26"}},
                                 {"port", {"443"}}});
  std::map<decltype(Decoded(Bytes{}).flow()), unsigned> seen;
  for (const Captured& made : packets) {
    const Decoded decoded(made.bytes);
    ++seen[decoded.flow()];
    EXPECT_EQ(decoded.source.substr(0, 2), std::string("\x0a\x01", 2));
    EXPECT_EQ(decoded.destination.substr(0, 3), std::string("\xc0\x00\x02", 3));
    EXPECT_EQ(static_cast<std::uint8_t>(decoded.destination[3]) & 0xc0, 0x40);
    EXPECT_EQ(decoded.destination_port, 443U);
    EXPECT_GE(decoded.source_port, 1024U);
  }
  EXPECT_THAT(seen, SizeIs(5000));
  for (const auto& [flow, times] : seen) EXPECT_TRUE(times == 2 || times == 3);
}

TEST(Generator, FindsEveryFlowOfASmallSpace) {
  const auto packets = generate(
      {{"flows", {"64512"}}, {"packets", {"64512"}}, {"source", {"10.0.0.1/32"}}, {"destination", {"10.0.0.2"}}});
  std::set<unsigned> ports;
  for (const Captured& made : packets) ports.insert(Decoded(made.bytes).source_port);
  EXPECT_THAT(ports, SizeIs(64512));
}

TEST(Generator, RefusesMoreFlowsThanThereAre) {
  EXPECT_THAT(error_of({{"flows", {"64513"}}, {"source", {"10.0.0.1/32"}}, {"destination", {"10.0.0.2"}}}),
              HasSubstr("at most about 64512"));
}

TEST(Generator, IsTheSameOnlyForTheSameSeed) {
  const auto frames = [](const char* seed) {
    std::vector<Bytes> all;
    for (Captured& made : generate({{"seed", {seed}}, {"payload", {"random"}}, {"packets", {"500"}}})) {
      all.push_back(std::move(made.bytes));
    }
    return all;
  };
  EXPECT_EQ(frames("7"), frames("7"));
  EXPECT_NE(frames("7"), frames("8"));
}

TEST(Generator, UsesDestinationsFromAFileInTurn) {
  const TemporaryFolder folder;
  std::string text = "# a table\n\n  default via 10.0.0.1\n";
  for (int i = 0; i < 99; ++i) text += "192.0." + std::to_string(i) + ".0/24 via 10.0.0.2 dev wan\n";
  testing::write_file(folder / "routes", Bytes(text.begin(), text.end()));
  std::set<std::string> networks;
  for (const Captured& made :
       generate({{"destinations", {folder / "routes"}}, {"flows", {"100"}}, {"packets", {"100"}}})) {
    networks.insert(Decoded(made.bytes).destination.substr(0, 3));
  }
  EXPECT_THAT(networks, SizeIs(100));  // one for each route
}

TEST(Generator, ReportsEveryBadLineOfTheDestinations) {
  const TemporaryFolder folder;
  const std::string text = "10.0.0.0/8\nblackhole 10.1.0.0/16\n2001:db8::/32\n10.0.0.1/8\n";
  testing::write_file(folder / "routes", Bytes(text.begin(), text.end()));
  const std::string error = error_of({{"destinations", {folder / "routes"}}});
  EXPECT_THAT(error, HasSubstr("routes:2:1: not an address range: found 'blackhole'"));
  EXPECT_THAT(error, HasSubstr("routes:3:1"));
  EXPECT_THAT(error, HasSubstr("routes:4:1"));
}

TEST(Generator, ContinuesEachTcpStreamWithoutAGap) {
  std::map<unsigned, unsigned> next;
  for (const Captured& made :
       generate({{"transport", {"tcp"}}, {"size", {"imix"}}, {"flows", {"13"}}, {"packets", {"2000"}}})) {
    const Decoded decoded(made.bytes);
    const auto [expected, first] = next.try_emplace(decoded.source_port, 1U);
    EXPECT_EQ(decoded.tcp_sequence, expected->second);
    expected->second += static_cast<unsigned>(decoded.payload.size());
  }
  EXPECT_THAT(next, SizeIs(13));
}

TEST(Generator, FillsAFrameWithOneWholeHttpRequest) {
  for (const unsigned size : {300U, 301U, 310U, 1000U, 1234U, 9000U}) {
    const auto packets = generate({{"transport", {"tcp"}},
                                   {"payload", {"http"}},
                                   {"size", {std::to_string(size)}},
                                   {"flows", {"1"}},
                                   {"packets", {"64"}}});
    std::set<std::string> different;
    for (const Captured& made : packets) {
      const std::string payload = Decoded(made.bytes).payload;
      EXPECT_EQ(payload.substr(0, 11), "POST /item/");
      const std::size_t length_at = payload.find("Content-Length: ");
      const std::size_t end = payload.find("\r\n\r\n");
      ASSERT_NE(end, std::string::npos);
      const std::size_t body = payload.size() - end - 4;
      EXPECT_EQ(std::stoul(payload.substr(length_at + 16)), body);
      different.insert(payload);
    }
    EXPECT_THAT(different, SizeIs(64));
  }
}

TEST(Generator, UsesPayloadsFromACapture) {
  const TemporaryFolder folder;
  std::vector<Captured> captured;
  for (const char* text : {"first payload", "", "second"}) {
    Bytes frame = packet().eth().ipv4("10.0.0.1", "10.0.0.2").udp(1, 2).payload(text).bytes();
    const auto length = static_cast<std::uint32_t>(frame.size());
    captured.push_back({1, length, LinkType::ethernet, std::move(frame)});
  }
  write_capture(folder / "a.pcap", captured);
  const std::vector<Given> given{
      {"payload", {"capture"}}, {"capture", {folder / "a.pcap"}}, {"packets", {"4"}}, {"flows", {"4"}}};
  std::set<std::string> seen;
  for (const Captured& made : generate(given)) seen.insert(Decoded(made.bytes).payload);
  EXPECT_EQ(seen, (std::set<std::string>{"first payloadfirst", "secondsecondsecond"}));

  write_capture(folder / "a.pcap", {captured[1]});
  EXPECT_THAT(error_of(given), HasSubstr("no packet with a payload"));
}

TEST(Generator, DistributesFlowsAndPacketsOverWorkersWithoutDuplicates) {
  const std::vector<Given> given{{"flows", {"1000"}}, {"packets", {"3456"}}, {"seed", {"3"}}};
  std::map<decltype(Decoded(Bytes{}).flow()), unsigned> alone;
  std::map<decltype(Decoded(Bytes{}).flow()), unsigned> shared;
  for (const Captured& made : generate(given, 1)) ++alone[Decoded(made.bytes).flow()];
  for (const Captured& made : generate(given, 4)) ++shared[Decoded(made.bytes).flow()];
  EXPECT_EQ(alone, shared);
}

std::uint64_t fake_now = 0;
std::uint64_t fake_step = 0;  // added at each reading of the clock
std::uint64_t fake_clock() noexcept { return fake_now += fake_step; }

std::unique_ptr<Port> with_fake_clock(const std::vector<Given>& given) {
  auto parameters = testing::read_parameters(*find_kind("generator"), given);
  EXPECT_TRUE(parameters) << to_string(parameters.error());
  auto port = make_generator(*parameters, 0, fake_clock);
  EXPECT_TRUE(port);
  return std::move(*port);
}

/// A generator that lends its frames, and a batch for them. Batches are done in the order in which they were filled.
struct Lends {
  explicit Lends(std::vector<Given> given, unsigned workers = 1, FrameRoom room = {}) {
    fake_now = 1;
    given.emplace_back("frames", std::vector<std::string>{"kept"});
    port = with_fake_clock(given);
    Opening opening(workers);
    opening.memory = &memory;
    opening.room = room;
    const auto opened = port->open(opening);
    EXPECT_TRUE(opened) << to_string(opened.error());
  }

  PacketMemory memory;
  std::unique_ptr<Port> port;
};

/// A batch in memory of its own, for lent frames.
struct LentBatch {
  explicit LentBatch(const PacketMemory& memory, std::size_t packets = 256)
      : bytes(std::size_t{1} << 20), descriptors(packets), batch(bytes, descriptors, {}, &memory) {}
  std::vector<std::uint8_t> bytes;
  std::vector<PacketDescriptor> descriptors;
  Batch batch;
};

TEST(Generator, WritesTheHeadersOfKeptFramesEachTime) {
  for (const char* size : {"200", "imix"}) {
    for (const char* transport : {"udp", "tcp"}) {
      for (const char* payload : {"zero", "random", "http"}) {
        Lends lends({{"size", {size}}, {"transport", {transport}}, {"payload", {payload}}, {"rate", {"1Gpps"}}});
        LentBatch memory(lends.memory);
        Batch& batch = memory.batch;
        std::size_t made = 0;
        for (unsigned round = 0; round < 60; ++round) {
          batch.reset(0);
          fake_now += 7 + round * 13 % 97;
          EXPECT_EQ(lends.port->rx(0)->poll(batch), RxStatus::idle);
          EXPECT_EQ(batch.lent(), batch.size());
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const PacketView view = batch.view(i);
            const Decoded decoded(Bytes(view.frame, view.frame + view.length()));
            ASSERT_TRUE(decoded.lengths_right && decoded.checksums_right) << size << transport << payload;
            std::fill_n(view.frame, 34, std::uint8_t{0xdd});  // Ethernet and IPv4 headers, as functions do
          }
          made += batch.size();
          lends.port->rx(0)->take_back(batch.size());
        }
        EXPECT_GT(made, 3000U);
      }
    }
  }
}

TEST(Generator, DoesNotWriteKeptPayloadsAgain) {
  Lends lends({{"rate", {"1Gpps"}}, {"size", {"1000"}}});
  LentBatch memory(lends.memory);
  Batch& batch = memory.batch;
  EXPECT_EQ(lends.port->rx(0)->poll(batch), RxStatus::idle);  // starts the clock
  lends.port->rx(0)->take_back(1);
  std::map<const std::uint8_t*, std::uint8_t> last;
  for (unsigned round = 0; round < 40; ++round) {
    batch.reset(0);
    fake_now += 100;
    EXPECT_EQ(lends.port->rx(0)->poll(batch), RxStatus::idle);
    ASSERT_EQ(batch.size(), 100U);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const PacketView view = batch.view(i);
      std::uint8_t& end = view.frame[view.length() - 1];
      EXPECT_EQ(end, last[view.frame]);
      end = last[view.frame] = static_cast<std::uint8_t>(round + 1);
    }
    lends.port->rx(0)->take_back(100);
  }
  EXPECT_LT(last.size(), 2000U) << "of 4000: frames that are back are lent again first: they are in the caches";
}

TEST(Generator, KeepsTheExactMixOfSizesHoweverBatchesComeBack) {
  for (const std::size_t in_batch : {1U, 4U, 8U, 32U, 500U}) {
    Lends lends({{"size", {"imix"}}, {"packets", {"12000"}}});
    LentBatch memory(lends.memory, in_batch);
    std::map<std::uint32_t, int> sizes;
    for (RxStatus status = RxStatus::more; status != RxStatus::end;) {
      memory.batch.reset(0);
      status = lends.port->rx(0)->poll(memory.batch);
      for (const PacketDescriptor& packet : memory.batch.packets()) ++sizes[packet.length];
      lends.port->rx(0)->take_back(memory.batch.size());
    }
    EXPECT_EQ(sizes, (std::map<std::uint32_t, int>{{60, 7000}, {590, 4000}, {1514, 1000}})) << in_batch;
  }
}

TEST(Generator, WritesWholeFramesIfTheHostChangesPayloads) {
  PacketMemory memory;
  auto port = with_fake_clock({{"frames", {"kept"}}, {"size", {"1000"}}, {"packets", {"100000"}}});
  Opening opening(1);
  opening.memory = &memory;
  opening.host_changes_payload = true;
  ASSERT_TRUE(port->open(opening));
  LentBatch lent(memory);
  for (unsigned round = 0; round < 20; ++round) {
    lent.batch.reset(0);
    EXPECT_EQ(port->rx(0)->poll(lent.batch), RxStatus::more);
    ASSERT_EQ(lent.batch.lent(), 256U);
    for (std::size_t i = 0; i < lent.batch.size(); ++i) {
      const PacketView view = lent.batch.view(i);
      const Bytes frame(view.frame, view.frame + view.length());
      ASSERT_TRUE(Decoded(frame).checksums_right);
      std::fill_n(view.frame, view.length(), std::uint8_t{0xdd});
    }
    port->rx(0)->take_back(256);
  }
}

TEST(Generator, NeverLendsAFrameThatIsNotBack) {
  for (const unsigned workers : {1U, 3U}) {
    Lends lends({{"size", {"9000"}}, {"flows", {"99"}}}, workers, {100, 60});
    std::set<const std::uint8_t*> out;
    for (unsigned w = 0; w < workers; ++w) {
      RxQueue& queue = *lends.port->rx(w);
      std::deque<const std::uint8_t*> lent;
      bool starved = false;
      for (unsigned round = 0; round < 400; ++round) {
        LentBatch memory(lends.memory, 1 + round * 7 % 100);
        const RxStatus status = queue.poll(memory.batch);
        ASSERT_TRUE(status == RxStatus::more || status == RxStatus::starved);
        starved |= status == RxStatus::starved;
        for (std::size_t i = 0; i < memory.batch.size(); ++i) {
          const std::uint8_t* const frame = memory.batch.view(i).frame;
          const auto near = out.lower_bound(frame - 9000 - 160);
          ASSERT_TRUE(near == out.end() || *near >= frame + 9000 + 160 - 8) << "frames and their room overlap";
          out.insert(frame);
          lent.push_back(frame);
        }
        // Sometimes fewer come back than were lent, sometimes more.
        for (std::size_t back = std::min<std::size_t>(lent.size(), starved ? 90 : round % 5); back > 0; --back) {
          out.erase(lent.front());
          lent.pop_front();
          queue.take_back(1);
        }
      }
      EXPECT_TRUE(starved) << "128 MiB are not enough for 350 batches";
    }
  }
}

TEST(Generator, TreatsDueTimesAsArrivalTimes) {
  fake_now = 5'000'000'000;
  auto port = with_fake_clock({{"rate", {"1Mpps"}}});
  ASSERT_TRUE(port->open(1));
  OwnBatch batch;
  const auto before = Batch::Clock::now().time_since_epoch();
  EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  const auto after = Batch::Clock::now().time_since_epoch();
  fake_now += 1'000'000;  // late
  EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  const auto to_clock = port->rx(0)->arrivals_to_clock();
  ASSERT_TRUE(to_clock);
  const auto arrival = [&](std::size_t i) {
    return std::chrono::nanoseconds(batch->packets()[i].timestamp_ns) + *to_clock;
  };
  EXPECT_GE(arrival(0), before);
  EXPECT_LE(arrival(0), after);
  EXPECT_EQ(arrival(7) - arrival(0), std::chrono::microseconds{7});

  auto unlimited = with_fake_clock({});
  ASSERT_TRUE(unlimited->open(1));
  EXPECT_EQ(unlimited->rx(0)->arrivals_to_clock(), std::nullopt);
}

TEST(Generator, OffersWhatIsDueAndNoMore) {
  fake_now = 5'000'000'000;
  auto port = with_fake_clock({{"rate", {"1Mpps"}}});
  EXPECT_FALSE(port->lossless());
  ASSERT_TRUE(port->open(1));
  OwnBatch batch(1 << 20, 10'000);
  for (const std::uint64_t step_ns : {0ULL, 999ULL, 1ULL, 1'000'000ULL, 123'456ULL, 3'000'000ULL}) {
    const std::uint64_t due_before = (fake_now - 5'000'000'000) / 1000;
    fake_now += step_ns;
    const std::uint64_t due_now = (fake_now - 5'000'000'000) / 1000;
    batch->reset(0);
    EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
    const std::uint64_t first = step_ns == 0 ? 1 : 0;  // the packet due at the start
    EXPECT_EQ(batch->size(), due_now - due_before + first) << step_ns;
    for (const PacketDescriptor& made : batch->packets()) EXPECT_LE(made.timestamp_ns, fake_now);
  }
  EXPECT_EQ(batch->packets().back().timestamp_ns - batch->packets().front().timestamp_ns, 2'999'000U);
}

TEST(Generator, AppliesABitRateToWholeFrames) {
  fake_now = 1;
  auto port = with_fake_clock({{"rate", {"1Gbps"}}, {"size", {"imix"}}});
  ASSERT_TRUE(port->open(2));
  OwnBatch batch(32 << 20, 100'000);
  std::uint64_t bits = 0;
  for (unsigned worker = 0; worker < 2; ++worker) EXPECT_EQ(port->rx(worker)->poll(*batch), RxStatus::idle);
  fake_now += 100'000'000;  // 0.1 s
  for (unsigned worker = 0; worker < 2; ++worker) EXPECT_EQ(port->rx(worker)->poll(*batch), RxStatus::idle);
  for (const PacketDescriptor& made : batch->packets()) bits += 8 * (made.length + 4);
  EXPECT_NEAR(static_cast<double>(bits), 1e8, 4 * 1518 * 8);
}

TEST(Generator, CatchesUpOverSeveralPollsIfABatchIsTooSmall) {
  fake_now = 0;
  auto port = with_fake_clock({{"rate", {"1Mpps"}}, {"packets", {"250"}}});
  fake_now = 1'000;
  ASSERT_TRUE(port->open(1));
  OwnBatch batch(1 << 20, 100);
  EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::idle);
  EXPECT_EQ(batch->size(), 1U);
  fake_now += 1'000'000'000;
  std::size_t got = 1;
  for (const RxStatus expected : {RxStatus::more, RxStatus::more, RxStatus::end}) {
    batch->reset(0);
    EXPECT_EQ(port->rx(0)->poll(*batch), expected);
    got += batch->size();
  }
  EXPECT_EQ(got, 250U);
  EXPECT_EQ(port->progress(), 1.0);
}

TEST(Generator, DiscardsDuePacketsAndContinuesAsIfTheyWereMade) {
  const std::vector<Given> given{{"rate", {"1Mpps"}}, {"size", {"imix"}}, {"transport", {"tcp"}}};
  std::vector<std::vector<Bytes>> ends;
  for (const bool discards : {false, true}) {
    fake_now = 1;
    auto port = with_fake_clock(given);
    ASSERT_TRUE(port->open(1));
    RxQueue* const queue = port->rx(0);
    OwnBatch batch(32 << 20, 100'000);
    EXPECT_EQ(queue->poll(*batch), RxStatus::idle);
    batch->reset(0);
    fake_now += 300'000;  // 300 packets
    if (discards) {
      const RxQueue::Discarded first = queue->discard(100);
      EXPECT_EQ(first.status, RxStatus::more);
      EXPECT_EQ(first.packets, 100U);
      const RxQueue::Discarded rest = queue->discard(1000);
      EXPECT_EQ(rest.status, RxStatus::idle);
      EXPECT_NEAR(static_cast<double>(rest.packets), 200, 1);
      EXPECT_GT(first.bytes, 100U * 60);
    } else {
      EXPECT_EQ(queue->poll(*batch), RxStatus::idle);
      batch->reset(0);
    }
    fake_now += 50'000;
    EXPECT_EQ(queue->poll(*batch), RxStatus::idle);
    ends.emplace_back();
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const PacketView packet = batch->view(i);
      ends.back().emplace_back(packet.frame, packet.frame + packet.length());
    }
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(Generator, ReportsDuePacketsThatWereNotMade) {
  for (const char* rate : {"1Mpps", "512Mbps"}) {  // frames of 64 bytes: the same
    fake_now = 1'000;
    auto port = with_fake_clock({{"rate", {rate}}});
    ASSERT_TRUE(port->open(1));
    OwnBatch batch(1 << 20, 100);
    port->rx(0)->poll(*batch);
    EXPECT_EQ(port->offered()->packets, 1U) << rate;
    EXPECT_EQ(port->offered()->behind.count(), 0);
    fake_now += 1'000'000;
    batch->reset(0);
    EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::more);
    EXPECT_EQ(port->offered()->packets, 1000U) << rate << ": 101 made";
    EXPECT_EQ(port->offered()->behind.count(), 899'000);
  }
  EXPECT_EQ(must_make("generator", {})->offered(), std::nullopt) << "as fast as taken: nothing is asked for";
}

TEST(Generator, OffersNoMoreThanItsPacketCount) {
  fake_now = 1'000;
  auto port = with_fake_clock({{"rate", {"1Mpps"}}, {"packets", {"150"}}});
  ASSERT_TRUE(port->open(1));
  OwnBatch batch(1 << 20, 100);
  port->rx(0)->poll(*batch);
  fake_now += 1'000'000;
  batch->reset(0);
  port->rx(0)->poll(*batch);
  EXPECT_EQ(port->offered()->packets, 150U);
}

TEST(Generator, IsLosslessAndEndlessWithoutARateAndACount) {
  auto port = must_make("generator", {});
  EXPECT_TRUE(port->lossless());
  ASSERT_TRUE(port->open(1));
  EXPECT_EQ(port->progress(), std::nullopt);
  OwnBatch batch;
  EXPECT_EQ(port->rx(0)->poll(*batch), RxStatus::more);
  EXPECT_EQ(batch->size(), batch->capacity_packets());
}

TEST(Generator, EndsWithAnErrorIfAFrameDoesNotFitInABatch) {
  auto port = must_make("generator", {{"size", {"9000"}}});
  ASSERT_TRUE(port->open(1));
  EXPECT_THAT(drain(*port, 1, OwnBatch(4096, 8)).front(), IsEmpty());
  EXPECT_THAT(to_string(port->close()), HasSubstr("8996 bytes"));
}

TEST(Generator, ExplainsInvalidParameters) {
  EXPECT_THAT(error_of({{"size", {"63"}}}), HasSubstr("64 (the size of the headers) to 9000, or imix"));
  EXPECT_THAT(error_of({{"size", {"9001"}}}), HasSubstr("found '9001'"));
  EXPECT_THAT(error_of({{"size", {"huge"}}}), HasSubstr("chain.yaml:2:1"));
  EXPECT_THAT(error_of({{"size", {"64"}}, {"network", {"ipv6"}}}), HasSubstr("66 (the size of the headers"));
  EXPECT_THAT(error_of({{"size", {"70"}}, {"network", {"ipv6"}}, {"transport", {"tcp"}}}), HasSubstr("78 (the"));
  EXPECT_THAT(error_of({{"source", {"2001:db8::/32"}}}), HasSubstr("an IPv4 prefix"));
  EXPECT_THAT(error_of({{"destination", {"10.0.0.0/8"}}, {"network", {"ipv6"}}, {"size", {"100"}}}),
              HasSubstr("an IPv6 prefix"));
  EXPECT_THAT(error_of({{"payload", {"capture"}}}), HasSubstr("require each other"));
  EXPECT_THAT(error_of({{"capture", {"a.pcap"}}}), HasSubstr("require each other"));
  EXPECT_THAT(error_of({{"destination", {"10.0.0.0/8"}}, {"destinations", {"a"}}}), HasSubstr("mutually exclusive"));
}

}  // namespace
}  // namespace penstock::port
