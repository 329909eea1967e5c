// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The fields of a packet, and how stages access them (Gaviss §4.3: the CR, CW, GR and GW vectors). The byte fields
// partition a frame: every byte of any frame belongs to exactly one field.

#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace penstock {

enum class Field : std::uint8_t {
  // link layer
  eth_dst,
  eth_src,
  eth_type,
  vlan_tags,
  link_header,  // other link types: the whole header
  arp,
  // IPv4
  ipv4_version_ihl,
  ipv4_tos,
  ipv4_length,
  ipv4_id,
  ipv4_fragment,
  ipv4_ttl,
  ipv4_protocol,
  ipv4_checksum,
  ipv4_src,
  ipv4_dst,
  ipv4_options,
  // IPv6
  ipv6_class_label,
  ipv6_length,
  ipv6_next_header,
  ipv6_hop_limit,
  ipv6_src,
  ipv6_dst,
  ipv6_extensions,
  // transport
  l4_src_port,  // TCP, UDP, SCTP
  l4_dst_port,
  l4_checksum,  // TCP, UDP, SCTP, ICMP
  tcp_seq,
  tcp_ack,
  tcp_flags,  // including the data offset
  tcp_window,
  tcp_urgent,
  tcp_options,
  udp_length,
  sctp_tag,
  icmp_type_code,
  icmp_rest,
  // the rest of the frame
  payload,  // from the end of the last complete header to the end of the IP packet, regardless of the UDP length
  trailer,  // link-layer padding after the IP packet
  // metadata: no bytes of the frame
  frame_shape,  // start and end of the frame: written by functions that change its length
  wire_length,
  timestamp,
  in_port,
  verdict,
  mark,
  flow_hash,
};

inline constexpr unsigned kFieldCount = static_cast<unsigned>(Field::flow_hash) + 1;
inline constexpr unsigned kByteFieldCount = static_cast<unsigned>(Field::trailer) + 1;
static_assert(kFieldCount < 64);

/// A set of fields, stored in one word.
class FieldSet {
 public:
  constexpr FieldSet() = default;
  constexpr FieldSet(std::initializer_list<Field> fields) {
    for (const Field field : fields) bits_ |= bit(field);
  }
  [[nodiscard]] static constexpr FieldSet all() {
    FieldSet set;
    set.bits_ = (std::uint64_t{1} << kFieldCount) - 1;
    return set;
  }

  /// Without bits that are no field's.
  [[nodiscard]] static constexpr FieldSet of_bits(std::uint64_t bits) {
    FieldSet set;
    set.bits_ = bits & all().bits_;
    return set;
  }

  [[nodiscard]] constexpr bool has(Field field) const { return (bits_ & bit(field)) != 0; }
  [[nodiscard]] constexpr bool empty() const { return bits_ == 0; }
  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }

  constexpr FieldSet& operator|=(FieldSet other) { return bits_ |= other.bits_, *this; }
  constexpr FieldSet& operator&=(FieldSet other) { return bits_ &= other.bits_, *this; }
  constexpr FieldSet& operator-=(FieldSet other) { return bits_ &= ~other.bits_, *this; }
  friend constexpr FieldSet operator|(FieldSet a, FieldSet b) { return a |= b; }
  friend constexpr FieldSet operator&(FieldSet a, FieldSet b) { return a &= b; }
  friend constexpr FieldSet operator-(FieldSet a, FieldSet b) { return a -= b; }
  friend constexpr bool operator==(FieldSet, FieldSet) = default;

 private:
  static constexpr std::uint64_t bit(Field field) { return std::uint64_t{1} << static_cast<unsigned>(field); }
  std::uint64_t bits_ = 0;
};

/// The fields that a stage reads and writes. A stage that writes a field of only some packets, or only some bytes of
/// it, also reads it.
struct Access {
  FieldSet reads;
  FieldSet writes;
  friend constexpr bool operator==(const Access&, const Access&) = default;
};

/// "ipv4_dst"
[[nodiscard]] std::string_view name(Field field);
/// "ipv4_src ipv4_dst"; a complete group has one name ("ipv4" for all IPv4 header fields); "-" if empty.
[[nodiscard]] std::string to_string(FieldSet fields);

/// All header fields of a protocol, including options, for stages that access whole headers.
inline constexpr FieldSet kIpv4HeaderFields{Field::ipv4_version_ihl, Field::ipv4_tos,      Field::ipv4_length,
                                            Field::ipv4_id,          Field::ipv4_fragment, Field::ipv4_ttl,
                                            Field::ipv4_protocol,    Field::ipv4_checksum, Field::ipv4_src,
                                            Field::ipv4_dst,         Field::ipv4_options};
inline constexpr FieldSet kIpv6HeaderFields{Field::ipv6_class_label, Field::ipv6_length, Field::ipv6_next_header,
                                            Field::ipv6_hop_limit,   Field::ipv6_src,    Field::ipv6_dst,
                                            Field::ipv6_extensions};
/// The fields that parsing reads, since they determine where the headers are. So every function that uses the layout
/// reads them.
inline constexpr FieldSet kParsedFields{Field::eth_type,         Field::vlan_tags,        Field::link_header,
                                        Field::ipv4_version_ihl, Field::ipv4_length,      Field::ipv4_fragment,
                                        Field::ipv4_protocol,    Field::ipv6_class_label, Field::ipv6_length,
                                        Field::ipv6_next_header, Field::ipv6_extensions,  Field::tcp_flags,
                                        Field::frame_shape,      Field::wire_length};
/// The fields that a function also reads if it uses the layout's tunnel.
inline constexpr FieldSet kTunnelFields{Field::l4_dst_port, Field::payload};

}  // namespace penstock
