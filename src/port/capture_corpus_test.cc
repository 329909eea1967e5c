// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Compares the pcap port with plain libpcap on a corpus of real and damaged captures: same packets, same end.

#include <gtest/gtest.h>
#include <pcap/pcap.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "port/link_types.h"
#include "port/testing/port_harness.h"

namespace penstock::port {
namespace {

using testing::Bytes;
using testing::Captured;
using testing::read_captures;
using testing::read_file;
using testing::TemporaryFolder;
using testing::write_capture;

std::vector<std::string> captures_of_corpus() {
  const char* given = std::getenv("PENSTOCK_CORPUS");
  const std::filesystem::path corpus = given != nullptr ? given : PENSTOCK_SOURCE_DIR "/../shared/data";
  std::vector<std::string> paths;
  if (!std::filesystem::is_directory(corpus / "captures")) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus / "captures")) {
    const std::string name = entry.path().filename().string();
    if (entry.is_regular_file() && name.find(".pcap") != std::string::npos && !name.ends_with(".gz")) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// What plain libpcap reads from a file.
struct Plain {
  bool opened = false;
  bool supported = false;
  bool whole = false;
  std::vector<Captured> packets;
};

Plain read_plainly(const std::string& path) {
  Plain plain;
  std::array<char, PCAP_ERRBUF_SIZE> reason{};
  pcap_t* capture = pcap_open_offline_with_tstamp_precision(path.c_str(), PCAP_TSTAMP_PRECISION_NANO, reason.data());
  if (capture == nullptr) return plain;
  plain.opened = true;
  const auto type = link_type_of_dlt(pcap_datalink(capture));
  plain.supported = type.has_value();
  const bool classic = pcap_major_version(capture) >= 2;
  pcap_pkthdr* header = nullptr;
  const u_char* bytes = nullptr;
  int status = 0;
  while (plain.supported && (status = pcap_next_ex(capture, &header, &bytes)) == 1) {
    // The seconds in a classic capture are unsigned, but libpcap 1.10 returns them signed.
    const auto seconds = classic ? static_cast<std::uint32_t>(header->ts.tv_sec)
                                 : static_cast<std::uint64_t>(std::max<std::int64_t>(header->ts.tv_sec, 0));
    plain.packets.push_back(
        {seconds * 1'000'000'000 + static_cast<std::uint64_t>(std::max<std::int64_t>(header->ts.tv_usec, 0)),
         std::max(header->len, header->caplen), *type, Bytes(bytes, bytes + header->caplen)});
  }
  plain.whole = status == PCAP_ERROR_BREAK;
  pcap_close(capture);
  return plain;
}

TEST(CaptureCorpus, ReadsTheSamePacketsAsLibpcap) {
  const auto paths = captures_of_corpus();
  if (paths.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  std::size_t packets = 0;
  std::size_t refused = 0;
  std::size_t broken = 0;
  for (const std::string& path : paths) {
    const Plain plain = read_plainly(path);
    const auto read = read_captures({path});
    ASSERT_EQ(read.packets, plain.packets) << path;
    EXPECT_EQ(read.errors.empty(), plain.opened && plain.supported && plain.whole)
        << path << ": " << to_string(read.errors);
    packets += plain.packets.size();
    refused += plain.supported ? 0 : 1;
    broken += plain.supported && !plain.whole ? 1 : 0;
  }
  RecordProperty("captures", static_cast<int>(paths.size()));
  std::printf("%zu captures, %zu packets; %zu refused at the start, %zu broken later\n", paths.size(), packets, refused,
              broken);
  EXPECT_GT(packets, 0U);
}

TEST(CaptureCorpus, SurvivesARoundTripInEveryFormat) {
  const auto paths = captures_of_corpus();
  if (paths.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  const TemporaryFolder folder;
  for (const std::string& path : paths) {
    const auto read = read_captures({path});
    if (read.packets.empty()) continue;
    for (const char* name : {"a.pcap", "a.pcapng", "a.pcap.gz", "a.pcapng.zst"}) {
      const auto written = write_capture(folder / name, read.packets);
      const bool fits = std::all_of(read.packets.begin(), read.packets.end(),
                                    [](const Captured& p) { return p.timestamp_ns >> 32 < 1'000'000'000; });
      if (!fits && std::string_view(name).substr(0, 8) != "a.pcapng") {
        EXPECT_EQ(written.errors.size(), 1U) << path << " holds times of 2106 and later";
        continue;
      }
      ASSERT_TRUE(written.errors.empty()) << path << ": " << to_string(written.errors);
      ASSERT_EQ(read_captures({folder / name}).packets, read.packets) << path;
    }
  }
}

/// The raw records of a little-endian microsecond capture of Ethernet, up to the first incomplete one. Empty for other
/// files, and for files with inconsistent records (a fraction of one second or more, more bytes captured than on the
/// wire, a length above the snapshot length).
Bytes records_of(const Bytes& file) {
  const auto u32 = [&](std::size_t at) {
    return static_cast<std::uint32_t>(file[at]) | static_cast<std::uint32_t>(file[at + 1]) << 8 |
           static_cast<std::uint32_t>(file[at + 2]) << 16 | static_cast<std::uint32_t>(file[at + 3]) << 24;
  };
  if (file.size() < 24 || u32(0) != 0xa1b2c3d4 || u32(4) != 0x00040002 || u32(20) != 1) return {};
  std::size_t at = 24;
  while (file.size() - at >= 16 && file.size() - at - 16 >= u32(at + 8)) {
    const std::uint32_t length = u32(at + 8);
    if (u32(at + 4) >= 1'000'000 || length > u32(at + 12) || length > u32(16)) return {};
    at += 16 + length;
  }
  return Bytes(file.begin() + 24, file.begin() + static_cast<std::ptrdiff_t>(at));
}

TEST(CaptureCorpus, WritesTheRecordsOfEthernetCapturesByteForByte) {
  const auto paths = captures_of_corpus();
  if (paths.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  const TemporaryFolder folder;
  std::size_t compared = 0;
  for (const std::string& path : paths) {
    const Bytes records = records_of(read_file(path));
    if (records.empty()) continue;
    write_capture(folder / "out.pcap", read_captures({path}).packets);
    const Bytes written = read_file(folder / "out.pcap");
    ASSERT_EQ(Bytes(written.begin() + 24, written.end()), records) << path;
    ++compared;
  }
  std::printf("%zu captures compared\n", compared);
  EXPECT_GT(compared, 0U);
}

TEST(CaptureCorpus, LosesNoPacketAmongSeveralWorkersAndManyFiles) {
  std::vector<std::string> paths;
  std::map<std::string, int> expected;
  for (const std::string& path : captures_of_corpus()) {
    const auto read = read_captures({path});
    if (!read.errors.empty()) continue;
    paths.push_back(path);
    for (const Captured& packet : read.packets) ++expected[std::string(packet.bytes.begin(), packet.bytes.end())];
  }
  if (paths.empty()) GTEST_SKIP() << "no corpus of captures; PENSTOCK_CORPUS names its folder";
  auto port = testing::must_make("pcap", {{"read", paths}});
  ASSERT_TRUE(port->open(3));
  std::map<std::string, int> got;
  for (const auto& of_worker : testing::drain(*port, 3)) {
    for (const Captured& packet : of_worker) ++got[std::string(packet.bytes.begin(), packet.bytes.end())];
  }
  EXPECT_TRUE(port->close().empty());
  EXPECT_TRUE(got == expected);
}

}  // namespace
}  // namespace penstock::port
