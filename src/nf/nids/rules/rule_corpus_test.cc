// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads whole public rule sets. An independent scan that only knows names determines which rules must load; each rule
// that is left out must need something unsupported. Skipped if the sets are absent.

#include <gmock/gmock.h>
#include <zlib.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <regex>
#include <set>
#include <sstream>

#include "nf/nids/rules/load_table.h"
#include "nf/nids/rules/rules_for_test.h"

namespace penstock::nids {
namespace {

namespace fs = std::filesystem;

const std::set<std::string> kProtocols{"tcp",    "tcp-pkt", "tcp-stream", "udp",  "icmp", "icmpv4",
                                       "icmpv6", "ip",      "ipv4",       "ipv6", "sctp", "pkthdr"};
const std::set<std::string> kOptions{
    "content",
    "nocase",
    "depth",
    "offset",
    "distance",
    "within",
    "fast_pattern",
    "startswith",
    "endswith",
    "rawbytes",
    "pcre",
    "isdataat",
    "dsize",
    "bsize",
    "byte_test",
    "byte_jump",
    "byte_extract",
    "byte_math",
    "base64_decode",
    "base64_data",
    "flow",
    "flowbits",
    "flowint",
    "xbits",
    "flags",
    "tcp.flags",
    "ack",
    "seq",
    "window",
    "tcp.hdr",
    "tcp.mss",
    "udp.hdr",
    "ipv4.hdr",
    "ipv6.hdr",
    "icmpv4.hdr",
    "icmpv6.hdr",
    "icmpv6.mtu",
    "ttl",
    "tos",
    "id",
    "ipopts",
    "fragbits",
    "fragoffset",
    "ip_proto",
    "sameip",
    "itype",
    "icode",
    "icmp_id",
    "icmp_seq",
    "ipv4-csum",
    "tcpv4-csum",
    "tcpv6-csum",
    "udpv4-csum",
    "udpv6-csum",
    "icmpv4-csum",
    "icmpv6-csum",
    "stream_size",
    "stream-event",
    "decode-event",
    "threshold",
    "detection_filter",
    "tag",
    "noalert",
    "alert",
    "prefilter",
    "priority",
    "classtype",
    "metadata",
    "reference",
    "sid",
    "rev",
    "gid",
    "msg",
    "target",
    "pkt_data",
};

fs::path data() {
  const char* corpus = std::getenv("PENSTOCK_CORPUS");
  return corpus != nullptr ? fs::path(corpus) : fs::path(PENSTOCK_SOURCE_DIR) / ".." / "shared" / "data";
}

std::string text_of(const fs::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");  // reads plain files too
  if (file == nullptr) return {};
  std::string text;
  char chunk[65536];
  for (int got = 0; (got = gzread(file, chunk, sizeof chunk)) > 0;) text.append(chunk, static_cast<std::size_t>(got));
  gzclose(file);
  return text;
}

/// Names and values of a line's options, split by quotes rather than by semicolons.
std::vector<std::pair<std::string, std::string>> scan(const std::string& line) {
  std::vector<std::pair<std::string, std::string>> options;
  std::string name, value;
  bool in_value = false, quoted = false;
  for (std::size_t i = line.find('(') + 1; i < line.rfind(')'); ++i) {
    const char c = line[i];
    if (c == '\\') {
      (in_value ? value : name) += line.substr(i++, 2);
    } else if (c == ';' && !quoted) {
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char x) { return std::tolower(x); });
      options.emplace_back(name, value);
      name.clear();
      value.clear();
      in_value = false;
    } else if (c == ':' && !in_value) {
      in_value = true;
    } else if (in_value) {
      if (c == '"') quoted = !quoted;
      value += c;
    } else if (c != ' ') {
      name += c;
    }
  }
  return options;
}

bool ought_to_load(const std::string& line) {
  std::istringstream words(line);
  std::string action, protocol;
  words >> action >> protocol;
  if (kProtocols.count(protocol) == 0) return false;
  static const std::regex http_flags("/[a-zA-Z]*[PHDCKMQSYVWZ][a-zA-Z]*\"?\\s*$");
  for (const auto& [name, value] : scan(line)) {
    if (kOptions.count(name) == 0) return false;
    if (name == "pcre" && std::regex_search(value, http_flags)) return false;
    if ((name == "byte_test" || name == "byte_jump" || name == "byte_extract") && value.find("dce") != value.npos) {
      return false;
    }
  }
  return true;
}

void expect_set_loads(const fs::path& path) {
  const std::string text = text_of(path);
  if (text.empty()) GTEST_SKIP() << path << " is absent";
  std::set<std::uint32_t> due_lines;
  std::istringstream lines(text);
  std::uint32_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty() || line[0] == '#' || line.find('(') == line.npos) continue;
    if (ought_to_load(line)) due_lines.insert(number);
  }
  const auto before = std::chrono::steady_clock::now();
  const RuleSet set = rules_of(text);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  std::cout << path.filename().string() << ": " << due_lines.size() << " rules ought to load; read in "
            << static_cast<int>(seconds * 1000) << " ms\n"
            << to_string(load_table(set));
  std::set<std::uint32_t> loaded;
  for (const Rule& rule : set.rules) loaded.insert(rule.line);
  for (const std::uint32_t line : due_lines) {
    EXPECT_EQ(loaded.count(line), 1U) << path << ':' << line;
  }
  for (const RuleSet::Left& left : set.left_out) {
    EXPECT_TRUE(left.reason.starts_with("protocol ") || left.reason.starts_with("option "))
        << left.reason << ": " << to_string(left.why);
  }
}

TEST(RuleCorpus, EverySupportedRuleOfEtOpenLoads) {
  expect_set_loads(data() / "rules/et-open-2023/emerging-all.rules.gz");
}
TEST(RuleCorpus, EverySupportedRuleOfSnortsCommunitySetLoads) {
  expect_set_loads(data() / "rules/snort-community/community.rules");
}

TEST(RuleCorpus, EverySupportedDisabledRuleLoads) {
  for (const char* name : {"rules/et-open-2023/emerging-all.rules.gz", "rules/snort-community/community.rules"}) {
    const std::string text = text_of(data() / name);
    if (text.empty()) GTEST_SKIP() << name << " is absent";
    std::string enabled;
    std::size_t due = 0;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("#alert", 0) != 0 && line.rfind("# alert", 0) != 0) continue;
      line = line.substr(line.find('a'));
      if (line.find('(') == line.npos || line.back() != ')' || !ought_to_load(line)) continue;
      ++due;
      enabled += line + '\n';
    }
    const RuleSet set = rules_of(enabled);
    // Some of the disabled rules are wrong; print what is left out.
    for (const RuleSet::Left& left : set.left_out) std::cout << left.reason << ": " << to_string(left.why) << '\n';
    std::cout << name << ": " << set.rules.size() << " of " << due << '\n';
    EXPECT_GE(static_cast<double>(set.rules.size()), 0.99 * static_cast<double>(due));
  }
}

TEST(RuleCorpus, AllRulesOfTheConformanceCasesLoad) {
  std::size_t files = 0;
  for (const char* group : {"a", "b", "d"}) {
    std::error_code absent;
    for (const auto& entry : fs::directory_iterator(data() / "ids" / group, absent)) {
      const RuleSet set = rules_of(text_of(entry.path() / "test.rules"));
      EXPECT_FALSE(set.rules.empty()) << entry.path();
      for (const RuleSet::Left& left : set.left_out) ADD_FAILURE() << entry.path() << ": " << to_string(left.why);
      ++files;
    }
  }
  if (files == 0) GTEST_SKIP() << "the cases are absent";
}

TEST(RuleCorpus, AllGeneratedAndPayloadRulesLoad) {
  for (const auto& [name, count] : {std::pair{"ids/generated/test.rules", 1500},
                                    {"ids/mix/payload-147.rules", 147},
                                    {"ids/mix/payload-1969.rules", 1969}}) {
    const std::string text = text_of(data() / name);
    if (text.empty()) GTEST_SKIP() << name << " is absent";
    EXPECT_EQ(rules_of(text).rules.size(), static_cast<std::size_t>(count)) << name;
  }
}

/// A second, independent reader of contents: one byte for each character, each escape, each pair of hexadecimal digits.
TEST(RuleCorpus, ContentsHaveAsManyBytesAsASecondReaderCounts) {
  const std::string text = text_of(data() / "ids/mix/payload-1969.rules");
  if (text.empty()) GTEST_SKIP() << "the rules are absent";
  std::size_t contents = 0, bytes = 0, negated = 0;
  std::uint64_t sum = 0;
  static const std::regex content("[ ;(]content: *(!?) *\"((\\\\.|[^\"\\\\])*)\"");
  for (std::sregex_iterator at(text.begin(), text.end(), content), end; at != end; ++at) {
    ++contents;
    negated += (*at)[1].length() > 0;
    const std::string value = (*at)[2];
    bool hex = false;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i] == '|') {
        hex = !hex;
      } else if (value[i] != ' ' || !hex) {
        const std::string digits = hex ? value.substr(i++, 2) : "";
        if (!hex && value[i] == '\\') ++i;
        sum += hex ? std::stoul(digits, nullptr, 16) : static_cast<unsigned char>(value[i]);
        ++bytes;
      }
    }
  }
  std::size_t read = 0, read_bytes = 0, read_negated = 0;
  std::uint64_t read_sum = 0;
  for (const Rule& rule : rules_of(text).rules) {
    for (const BufferMatches& buffer : rule.buffers) {
      for (const BufferMatch& match : buffer.matches) {
        if (const auto* one = std::get_if<Content>(&match)) {
          ++read;
          read_bytes += one->bytes.size();
          read_negated += one->negated;
          for (const std::uint8_t byte : one->bytes) read_sum += byte;
        }
      }
    }
  }
  EXPECT_GT(contents, 1969U);
  EXPECT_EQ(read, contents);
  EXPECT_EQ(read_bytes, bytes);
  EXPECT_EQ(read_negated, negated);
  EXPECT_EQ(read_sum, sum);
}

}  // namespace
}  // namespace penstock::nids
