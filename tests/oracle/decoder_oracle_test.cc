// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The decoder over a corpus of real and broken captures: it never reads out of bounds, and addresses, ports and
// payloads are those that Wireshark finds. Of overlapping fragments, it keeps the bytes that published models of hosts
// keep.

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/ip_address.h"
#include "port/capture_reader.h"
#include "property/corpus_packets.h"
#include "stack/decoder.h"

namespace penstock::stack {
namespace {

std::filesystem::path corpus() {
  const char* given = std::getenv("PENSTOCK_CORPUS");
  return given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data";
}

/// Calls `use(frame number, packets)` for each frame of a capture. Returns false if the capture cannot be read.
template <typename Use>
bool decode_capture(const std::string& path, const TrackerOptions& options, TrackerCounters& counters, Use&& use) {
  port::ReadControl control;
  auto captures = port::CaptureSequence::open({path}, control);
  if (!captures) return false;
  Decoder decoder(options, counters);
  std::uint64_t number = 0;
  std::vector<DecodedPacket> packets;
  for (port::CapturedFrame frame; captures->next(frame);) {
    std::vector<std::uint8_t> bytes;  // exactly the frame's size, so that overruns are detected
    bytes.reserve(frame.bytes.size() + 1);
    bytes.assign(frame.bytes.begin(), frame.bytes.end());
    PacketDescriptor descriptor;
    descriptor.timestamp_ns = frame.timestamp_ns;
    descriptor.length = static_cast<std::uint32_t>(bytes.size());
    descriptor.wire_length = frame.wire_length;
    descriptor.link_type = frame.link_type;
    packets.clear();
    decoder.decode({bytes.data(), &descriptor}, ++number, [&](DecodedPacket& p) noexcept { packets.push_back(p); });
    use(number, packets);
  }
  return true;
}

unsigned sum_of(Bytes bytes) {
  unsigned sum = 0;
  for (const std::uint8_t byte : bytes) sum += byte;
  return sum;
}

TEST(DecoderCorpus, DecodesAllCapturesWithoutOverruns) {
  auto files = property::corpus_captures();
  if (files.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  for (const char* folder : {"ids", "reassembly", "ipsec/captures"}) {
    if (!std::filesystem::is_directory(corpus() / folder)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus() / folder)) {
      if (entry.path().extension() == ".pcap") files.push_back(entry.path().string());
    }
  }
  std::uint64_t frames = 0, packets = 0;
  volatile unsigned sum = 0;
  TrackerCounters counters;
  for (const std::string& file : files) {
    decode_capture(file, {}, counters, [&](std::uint64_t, const std::vector<DecodedPacket>& decoded) {
      ++frames;
      packets += decoded.size();
      ASSERT_FALSE(decoded.empty());
      for (const DecodedPacket& p : decoded) {
        sum = sum + sum_of(p.ip) + sum_of(p.ip_payload) + sum_of(p.transport) + sum_of(p.payload);
        ASSERT_EQ(p.ip.empty(), p.ip_version == 0);
      }
    });
  }
  EXPECT_EQ(counters.packets, frames);
  EXPECT_EQ(packets, frames + counters.tunnelled + counters.reassembled);
  EXPECT_GT(frames, 100000U);
  EXPECT_GT(counters.tunnelled, 500U);
  EXPECT_GT(counters.reassembled, 100U);
}

std::string output_of(const std::string& command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), &pclose);
  std::string output;
  std::array<char, 65536> part{};
  for (std::size_t n = 0; pipe && (n = std::fread(part.data(), 1, part.size(), pipe.get())) > 0;) {
    output.append(part.data(), n);
  }
  return output;
}

std::string text_of(const DecodedPacket& packet, const Endpoint& endpoint) {
  return packet.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(endpoint.address.low)})
                                : to_string(endpoint.address);
}

struct Seen {
  std::string protocols, ip_source, ip_destination, ip6_source, ip6_destination, tcp_source, tcp_destination,
      tcp_length, udp_source, udp_destination, udp_length;
};

/// By frame: Wireshark's view of the outermost packet.
std::map<std::uint64_t, Seen> wireshark_of(const std::string& path) {
  std::map<std::uint64_t, Seen> frames;
  std::istringstream lines(
      output_of("tshark -n -r '" + path +
                "' -o ip.defragment:FALSE -o ipv6.defragment:FALSE -o tcp.desegment_tcp_streams:FALSE "
                "-T fields -E occurrence=f "
                "-e frame.number -e frame.protocols -e ip.src -e ip.dst -e ipv6.src -e ipv6.dst -e tcp.srcport -e "
                "tcp.dstport -e tcp.len "
                "-e udp.srcport -e udp.dstport -e udp.length 2>/dev/null"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string number;
    Seen s;
    std::getline(fields, number, '\t');
    for (std::string* field :
         {&s.protocols, &s.ip_source, &s.ip_destination, &s.ip6_source, &s.ip6_destination, &s.tcp_source,
          &s.tcp_destination, &s.tcp_length, &s.udp_source, &s.udp_destination, &s.udp_length}) {
      std::getline(fields, *field, '\t');
    }
    if (!number.empty()) frames[std::stoull(number)] = s;
  }
  return frames;
}

TEST(DecoderCorpus, FindsTheAddressesPortsAndPayloadsThatWiresharkFinds) {
  if (output_of("tshark --version 2>/dev/null").find("TShark") == std::string::npos) GTEST_SKIP() << "no tshark here";
  const auto files = property::corpus_captures();
  if (files.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  const char* every = std::getenv("PENSTOCK_EVERY");  // 1: all frames, which takes minutes
  const std::size_t step = every != nullptr ? std::stoul(every) : 64;
  std::uint64_t ip = 0, tcp = 0, udp = 0;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string& file = files[i];
    if (i % step != 0 && file.find("/mix.") == std::string::npos) continue;
    const auto seen = wireshark_of(file);
    TrackerCounters counters;
    unsigned reported = 0;
    decode_capture(file, {}, counters, [&](std::uint64_t number, const std::vector<DecodedPacket>& packets) {
      const auto found = seen.find(number);
      if (found == seen.end()) return;
      const DecodedPacket& p = packets[0];
      const Seen& s = found->second;
      // Wireshark always takes the last four bytes of a FabricPath frame as its FCS, whether it has one or not.
      if (p.ip_version == 0 || reported > 3 || s.protocols.find(":cfp:") != std::string::npos) return;
      const auto expect = [&](const std::string& ours, const std::string& theirs, const char* what) {
        if (ours != theirs && ++reported < 4)
          ADD_FAILURE() << file << " frame " << number << ": " << what << " " << ours << ", not " << theirs;
      };
      ++ip;
      expect(text_of(p, p.source), p.ip_version == 4 ? s.ip_source : s.ip6_source, "source");
      expect(text_of(p, p.destination), p.ip_version == 4 ? s.ip_destination : s.ip6_destination, "destination");
      if (p.is_tcp()) {
        ++tcp;
        expect(std::to_string(p.source.port), s.tcp_source, "TCP source");
        expect(std::to_string(p.destination.port), s.tcp_destination, "TCP destination");
        expect(std::to_string(p.payload.size()), s.tcp_length, "TCP payload");
      } else if (p.is_udp()) {
        ++udp;
        expect(std::to_string(p.source.port), s.udp_source, "UDP source");
        expect(std::to_string(p.destination.port), s.udp_destination, "UDP destination");
        expect(std::to_string(p.payload.size() + 8), s.udp_length, "UDP length");
      }
    });
  }
  EXPECT_GT(ip, 100000U);
  EXPECT_GT(tcp, 10000U);
  EXPECT_GT(udp, 10000U);
}

TEST(DecoderCorpus, KeepsTheOverlappingBytesThatModelsOfHostsKeep) {
  const auto folder = corpus() / "reassembly";
  if (!std::filesystem::exists(folder / "overlap_models.json")) GTEST_SKIP() << "no models of overlaps";
  const std::map<std::string, OverlapPolicy> policies{
      {"first", OverlapPolicy::first},      {"last", OverlapPolicy::last},
      {"bsd", OverlapPolicy::bsd},          {"bsd-right", OverlapPolicy::bsd_right},
      {"linux", OverlapPolicy::linux_host}, {"windows", OverlapPolicy::windows},
      {"solaris", OverlapPolicy::solaris}};
  const auto models = nlohmann::json::parse(std::ifstream(folder / "overlap_models.json"));
  std::size_t checked = 0;
  for (const auto& model : models) {
    for (const char* version : {"v4", "v6"}) {
      const auto file = folder / ("overlap_" + model["model"].get<std::string>() + "_" + version + ".pcap");
      for (const auto& [name, units] : model["expected_units_by_policy"].items()) {
        SCOPED_TRACE(file.string() + " " + name);
        TrackerOptions options;
        options.fragment_policy = policies.at(name);
        options.every_version = false;
        TrackerCounters counters;
        std::string kept = "1";  // the unit with the UDP header
        std::uint64_t overlaps = 0;
        ASSERT_TRUE(
            decode_capture(file, options, counters, [&](std::uint64_t, const std::vector<DecodedPacket>& packets) {
              const DecodeEvent overlap = std::string_view(version) == "v4" ? decode_event("ipv4.frag_overlap")
                                                                            : decode_event("ipv6.frag_overlap");
              if (packets[0].events[overlap.index]) ++overlaps;
              if (packets.size() < 2) return;
              const Bytes payload = packets[1].payload;
              for (std::size_t i = 0; i + 8 <= payload.size(); i += 8) kept += static_cast<char>(payload[i]);
            }));
        // The models are older than Linux 4.20, which discards overlapping fragments.
        const bool discards = options.fragment_policy == OverlapPolicy::linux_host;
        EXPECT_EQ(kept, discards ? "1" : units.get<std::string>());
        EXPECT_EQ(counters.reassembled, discards ? 0U : 1U);
        EXPECT_GT(overlaps, 0U);
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, 28U);
}

}  // namespace
}  // namespace penstock::stack
