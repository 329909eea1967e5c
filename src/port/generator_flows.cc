// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/generator_flows.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <span>
#include <unordered_set>
#include <utility>

#include "base/ip_address.h"
#include "base/text_file.h"
#include "packet/checksum.h"
#include "packet/flow_hash.h"

namespace penstock::port {

namespace {

constexpr std::uint32_t kFirstSourcePort = 1024;
constexpr std::uint32_t kSourcePorts = 65536 - kFirstSourcePort;
constexpr std::size_t kMostErrors = 100;

void put_be(std::uint8_t* to, std::uint64_t value, unsigned bytes) noexcept {
  for (unsigned i = 0; i < bytes; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * (bytes - 1 - i)));
}

/// A random address of `range`.
void draw(const AddressRange& range, std::span<std::uint8_t> to, std::mt19937_64& random) {
  for (std::size_t at = 0; at < to.size(); at += 4) put_be(&to[at], random(), 4);
  for (unsigned bit = 0; bit < range.length; bit += 8) {
    const unsigned fixed = std::min(8U, range.length - bit);
    const auto mask = static_cast<std::uint8_t>(0xff00U >> fixed);
    std::uint8_t& byte = to[bit / 8];
    byte = static_cast<std::uint8_t>((range.bytes[bit / 8] & mask) | (byte & ~mask));
  }
}

/// Fisher-Yates. The result of std::shuffle depends on the implementation.
void shuffle(std::vector<AddressRange>& ranges, std::mt19937_64& random) {
  for (std::size_t i = ranges.size(); i > 1; --i) std::swap(ranges[i - 1], ranges[random() % i]);
}

/// A 64-bit key of a tuple. Different keys imply different tuples; that suffices, since tuples with a used key are
/// drawn again.
std::uint64_t key_of(std::span<const std::uint8_t> tuple) noexcept {
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < tuple.size(); i += 4) {
    std::uint64_t word = 0;
    for (std::size_t b = i; b < i + 4; ++b) word = word << 8 | tuple[b];
    key = mix64(key ^ word) + word;
  }
  return key;
}

}  // namespace

Result<AddressRange> read_range(std::string_view text, unsigned address_bytes, const Place& place) {
  AddressRange range;
  if (text == "default") return range;
  if (address_bytes == 4) {
    if (const auto prefix = parse_ipv4_prefix(text)) {
      put_be(range.bytes.data(), prefix->address.bits, 4);
      range.length = prefix->length;
      return range;
    }
  } else if (const auto prefix = parse_ipv6_prefix(text)) {
    put_be(range.bytes.data(), prefix->address.high, 8);
    put_be(range.bytes.data() + 8, prefix->address.low, 8);
    range.length = prefix->length;
    return range;
  }
  return failure({place, "not an address range", in_quotes(text),
                  address_bytes == 4 ? "an IPv4 prefix such as 10.0.0.0/8" : "an IPv6 prefix such as 2001:db8::/32"});
}

Result<std::vector<AddressRange>> read_ranges(const std::string& path, unsigned address_bytes) {
  const auto text = read_lines(path);
  if (!text) return tl::unexpected(text.error());
  std::vector<AddressRange> ranges;
  Errors errors;
  std::size_t mistakes = 0;
  LineReader lines(*text);
  std::vector<Word> words;
  for (Line line; lines.next(line);) {
    split_words(line.text, words);
    if (words.empty() || words.front().text.starts_with('#')) continue;
    auto range = read_range(words.front().text, address_bytes, {path, line.number, words.front().column});
    if (range) {
      ranges.push_back(*range);
    } else if (++mistakes <= kMostErrors) {
      append(errors, std::move(range.error()));
    }
  }
  if (mistakes > kMostErrors)
    errors.push_back({{path, 0, 0}, fmt::format("… and {} more", mistakes - kMostErrors), "", ""});
  if (errors.empty() && ranges.empty()) errors.push_back({{path, 0, 0}, "no address range", "", "one per line"});
  if (!errors.empty()) return failure(std::move(errors));
  return ranges;
}

Result<std::vector<Flow>> make_flows(const FlowPlan& plan) {
  std::mt19937_64 random(plan.seed);
  std::vector<AddressRange> destinations = plan.destinations;
  shuffle(destinations, random);

  const unsigned width = plan.address_bytes;
  std::vector<Flow> flows(plan.flows);
  std::unordered_set<std::uint64_t> seen;
  seen.reserve(plan.flows);
  // Drawing all n tuples of a small space takes about n ln n draws. If far more are needed, there are not enough
  // tuples.
  std::uint64_t draws_left = 64 * plan.flows + 1'000'000;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    Flow& flow = flows[i];
    const std::span<std::uint8_t> tuple = std::span(flow.tuple).first(2 * width + 4);
    do {
      if (draws_left-- == 0) {
        return failure({{},
                        "the address ranges are too small for so many flows",
                        fmt::format("{} flows", plan.flows),
                        fmt::format("at most about {}", i)});
      }
      draw(plan.source, tuple.first(width), random);
      draw(destinations[i % destinations.size()], tuple.subspan(width, width), random);
      put_be(&tuple[2 * width], kFirstSourcePort + random() % kSourcePorts, 2);
      put_be(&tuple[2 * width + 2], plan.destination_port, 2);
    } while (!seen.insert(key_of(tuple)).second);
    flow.address_sum = checksum_add(tuple.data(), 2 * width);
    flow.port_sum = checksum_add(&tuple[2 * width], 4);
  }
  return flows;
}

}  // namespace penstock::port
