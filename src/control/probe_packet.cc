// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/probe_packet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include "base/ascii.h"
#include "base/decimal.h"
#include "base/ip_address.h"
#include "packet/checksum.h"
#include "packet/ethernet.h"
#include "packet/ip.h"
#include "packet/transport.h"

namespace penstock::control {

namespace {

constexpr std::string_view kForm = "PROTOCOL SOURCE DESTINATION, such as tcp 10.1.0.5:4242 192.0.2.7:443";

struct Protocol {
  std::string_view name;
  std::uint8_t number;
};
constexpr auto kProtocols = std::to_array<Protocol>({
    {"tcp", ip_protocol::kTcp},
    {"udp", ip_protocol::kUdp},
    {"sctp", ip_protocol::kSctp},
    {"icmp", ip_protocol::kIcmp},
    {"icmp6", ip_protocol::kIcmpv6},
    {"ipv6-icmp", ip_protocol::kIcmpv6},
    {"gre", ip_protocol::kGre},
    {"esp", ip_protocol::kEsp},
    {"ah", ip_protocol::kAh},
    {"ospf", 89},
});

constexpr std::array<std::string_view, 8> kFlags{"fin", "syn", "rst", "psh", "ack", "urg", "ece", "cwr"};

struct End {
  std::variant<Ipv4Address, Ipv6Address> address;
  std::uint16_t port = 0;

  [[nodiscard]] bool is_ipv6() const noexcept { return address.index() == 1; }
};

struct Tuple {
  std::uint8_t protocol = 0;
  End source, destination;
  std::uint8_t icmp_type = 0, icmp_code = 0;

  [[nodiscard]] bool is_ipv6() const noexcept { return source.is_ipv6(); }
  [[nodiscard]] bool is_icmp() const noexcept {
    return protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmpv6;
  }
};

tl::unexpected<Errors> mistake(std::string message, std::string_view found, std::string expected) {
  return failure(Error{{}, std::move(message), found.empty() ? "" : in_quotes(found), std::move(expected)});
}

/// At most one more than a tuple can have.
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (words.size() <= 4) {
    const std::size_t first = text.find_first_not_of(' ');
    if (first == std::string_view::npos) break;
    text.remove_prefix(first);
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

/// "10.1.0.5:80", "[2001:db8::1]:80"; without ports "10.1.0.5", "2001:db8::1".
Result<End> end_of(std::string_view text, bool has_port) {
  std::string_view address = text;
  End end;
  if (has_port) {
    const std::size_t colon = text.rfind(':');
    const auto port =
        colon == std::string_view::npos ? std::nullopt : parse_decimal<std::uint16_t>(text.substr(colon + 1));
    address = text.substr(0, colon);
    const bool bracketed = address.starts_with('[') && address.ends_with(']');
    // Without brackets, the end of an IPv6 address would be taken for a port.
    if (!port || (!bracketed && address.find(':') != std::string_view::npos))
      return mistake("not an address with a port", text, "such as 10.1.0.5:80 or [2001:db8::1]:80");
    end.port = *port;
    if (bracketed) address = address.substr(1, address.size() - 2);
  }
  if (const auto v4 = parse_ipv4(address)) {
    end.address = *v4;
  } else if (const auto v6 = parse_ipv6(address)) {
    end.address = *v6;
  } else {
    return mistake("not an IP address", address, "such as 10.1.0.5 or 2001:db8::1");
  }
  return end;
}

/// TYPE[/CODE]
Result<void> read_icmp(std::string_view text, Tuple& tuple) {
  const std::size_t slash = text.find('/');
  const auto type = parse_decimal<std::uint8_t>(text.substr(0, slash));
  const auto code = slash == std::string_view::npos ? std::optional<std::uint8_t>(0)
                                                    : parse_decimal<std::uint8_t>(text.substr(slash + 1));
  if (!type || !code) return mistake("wrong ICMP type", text, "TYPE or TYPE/CODE, such as 8 or 3/1");
  tuple.icmp_type = *type;
  tuple.icmp_code = *code;
  return {};
}

Result<Tuple> tuple_of(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 3) return mistake("not a packet", text, std::string(kForm));
  Tuple tuple;
  const auto named = std::ranges::find_if(
      kProtocols, [&](const Protocol& protocol) { return equals_ignoring_case(protocol.name, words[0]); });
  const auto number = named != kProtocols.end() ? std::optional(named->number) : parse_decimal<std::uint8_t>(words[0]);
  if (!number)
    return mistake("unknown protocol", words[0], "tcp, udp, sctp, icmp, icmp6, gre, esp, ah, ospf or a number");
  tuple.protocol = *number;
  const bool has_ports = begins_with_ports(tuple.protocol);
  auto source = end_of(words[1], has_ports);
  if (!source) return failure(std::move(source.error()));
  auto destination = end_of(words[2], has_ports);
  if (!destination) return failure(std::move(destination.error()));
  tuple.source = *source;
  tuple.destination = *destination;
  if (source->is_ipv6() != destination->is_ipv6())
    return mistake("the addresses are of different families", words[2], source->is_ipv6() ? "IPv6" : "IPv4");
  if (tuple.is_icmp() && tuple.is_ipv6() != (tuple.protocol == ip_protocol::kIcmpv6))
    return mistake("wrong protocol for these addresses", words[0], tuple.is_ipv6() ? "icmp6" : "icmp");
  constexpr std::uint8_t kEcho = 8, kEcho6 = 128;
  tuple.icmp_type = tuple.is_ipv6() ? kEcho6 : kEcho;
  const std::size_t most = tuple.is_icmp() ? 4 : 3;
  if (words.size() > most) return mistake("unexpected word", words[most], "nothing after it");
  if (words.size() == 4) {
    if (auto read = read_icmp(words[3], tuple); !read) return failure(std::move(read.error()));
  }
  return tuple;
}

Result<std::uint8_t> flags_of(std::string_view text, std::uint8_t protocol) {
  if (text.empty()) return TcpHeader::kSyn;
  if (protocol != ip_protocol::kTcp) return mistake("flags: only TCP has flags", text, "none with other protocols");
  if (equals_ignoring_case(text, "none")) return std::uint8_t{0};
  unsigned flags = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const auto flag = std::ranges::find_if(kFlags, [&](auto known) { return equals_ignoring_case(known, name); });
    if (flag == kFlags.end())
      return mistake("flags: unknown flag", name,
                     "fin, syn, rst, psh, ack, urg, ece and cwr, comma-separated, or none");
    flags |= 1U << (flag - kFlags.begin());
    begin = end + 1;
  }
  return static_cast<std::uint8_t>(flags);
}

class FrameWriter {
 public:
  FrameWriter& u8(unsigned value) { return bytes_.push_back(static_cast<std::uint8_t>(value)), *this; }
  FrameWriter& u16(unsigned value) { return u8(value >> 8 & 0xff).u8(value & 0xff); }
  FrameWriter& u32(std::uint64_t value) {
    return u16(static_cast<unsigned>(value >> 16 & 0xffff)).u16(static_cast<unsigned>(value & 0xffff));
  }
  FrameWriter& address(const End& end) {
    if (const auto* v4 = std::get_if<Ipv4Address>(&end.address)) return u32(v4->bits);
    const auto& v6 = std::get<Ipv6Address>(end.address);
    return u32(v6.high >> 32).u32(v6.high).u32(v6.low >> 32).u32(v6.low);
  }
  void set16(std::size_t at, std::size_t value) {
    bytes_[at] = static_cast<std::uint8_t>(value >> 8);
    bytes_[at + 1] = static_cast<std::uint8_t>(value);
  }
  [[nodiscard]] std::vector<std::uint8_t>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

constexpr std::size_t kIpAt = sizeof(EthernetHeader);

void write_headers(FrameWriter& frame, const Tuple& tuple, std::uint8_t flags) {
  for (const unsigned last : {2U, 1U}) frame.u32(0x0200'0000).u16(last);  // 02:00:00:00:00:02 and :01
  frame.u16(tuple.is_ipv6() ? ether_type::kIpv6 : ether_type::kIpv4);
  if (tuple.is_ipv6()) {
    frame.u32(0x6000'0000).u16(0).u8(tuple.protocol).u8(64);
  } else {
    frame.u32(0x4500'0000).u16(1).u16(Ipv4Header::kDontFragment).u8(64).u8(tuple.protocol).u16(0);
  }
  frame.address(tuple.source).address(tuple.destination);
  switch (tuple.protocol) {
    case ip_protocol::kTcp:
      frame.u16(tuple.source.port).u16(tuple.destination.port).u32(1).u32((flags & TcpHeader::kAck) != 0 ? 1 : 0);
      frame.u8(0x50).u8(flags).u16(0xffff).u16(0).u16(0);
      break;
    case ip_protocol::kUdp: frame.u16(tuple.source.port).u16(tuple.destination.port).u16(0).u16(0); break;
    case ip_protocol::kIcmp:
    case ip_protocol::kIcmpv6: frame.u8(tuple.icmp_type).u8(tuple.icmp_code).u16(0).u32(0x0001'0001); break;
    default:
      if (begins_with_ports(tuple.protocol))
        frame.u16(tuple.source.port).u16(tuple.destination.port).u32(1).u32(0);  // SCTP and UDP-Lite
  }
}

/// Where the checksum is in the transport header; empty: it has none that is checked here.
std::optional<std::size_t> checksum_at(std::uint8_t protocol) {
  switch (protocol) {
    case ip_protocol::kTcp: return 16;
    case ip_protocol::kUdp: return 6;
    case ip_protocol::kIcmp:
    case ip_protocol::kIcmpv6: return 2;
    default: return std::nullopt;
  }
}

void write_lengths_and_checksums(FrameWriter& frame, const Tuple& tuple) {
  std::vector<std::uint8_t>& bytes = frame.bytes();
  const std::size_t transport_at = kIpAt + (tuple.is_ipv6() ? sizeof(Ipv6Header) : sizeof(Ipv4Header));
  const std::size_t length = bytes.size() - transport_at;
  if (tuple.is_ipv6()) {
    frame.set16(kIpAt + 4, length);
  } else {
    frame.set16(kIpAt + 2, bytes.size() - kIpAt);
    frame.set16(kIpAt + 10, checksum(&bytes[kIpAt], sizeof(Ipv4Header)));
  }
  if (tuple.protocol == ip_protocol::kUdp) frame.set16(transport_at + 4, length);
  const auto at = checksum_at(tuple.protocol);
  if (!at) return;
  std::uint32_t sum = checksum_add(&bytes[transport_at], static_cast<std::uint32_t>(length));
  if (tuple.protocol != ip_protocol::kIcmp) {  // the pseudo-header
    const std::size_t addresses_at = kIpAt + (tuple.is_ipv6() ? 8 : 12);
    sum = checksum_add(&bytes[addresses_at], tuple.is_ipv6() ? 32 : 8, sum);
    sum += tuple.protocol + static_cast<std::uint32_t>(length);
  }
  std::uint16_t value = checksum_finish(sum);
  if (tuple.protocol == ip_protocol::kUdp && value == 0) value = 0xffff;  // 0 means that there is none
  frame.set16(transport_at + *at, value);
}

}  // namespace

Result<std::vector<std::uint8_t>> make_probe(const ProbeText& text) {
  const auto tuple = tuple_of(text.tuple);
  if (!tuple) return failure(tuple.error());
  const auto flags = flags_of(text.flags, tuple->protocol);
  if (!flags) return failure(flags.error());
  FrameWriter frame;
  write_headers(frame, *tuple, *flags);
  const std::size_t headers = frame.bytes().size();
  const std::uint64_t length = text.length.value_or(headers);
  if (length < headers || length > kLongestProbe) {
    return mistake("length: wrong value", std::to_string(length),
                   fmt::format("bytes of the frame with its {} of headers, at most {}", headers, kLongestProbe));
  }
  frame.bytes().resize(static_cast<std::size_t>(length));
  write_lengths_and_checksums(frame, *tuple);
  return std::move(frame.bytes());
}

Result<PortIndex> input_port(const run::Chain& chain, const std::string& name) {
  std::vector<PortIndex> reading;
  std::string names;
  for (std::size_t p = 0; p < chain.ports.size(); ++p) {
    if (!chain.ports[p].port->reads()) continue;
    if (chain.ports[p].name == name) return static_cast<PortIndex>(p);
    reading.push_back(static_cast<PortIndex>(p));
    names += (names.empty() ? "" : ", ") + chain.ports[p].name;
  }
  if (name.empty() && reading.size() == 1) return reading.front();
  return failure(name.empty() ? Error{{}, "--in is missing", "", "one of " + names}
                              : Error{{}, "in: no such port", in_quotes(name), "a port that reads: " + names});
}

}  // namespace penstock::control
