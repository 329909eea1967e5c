// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "conntrack/saved_connections.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/decimal.h"
#include "base/ip_address.h"
#include "base/text_file.h"
#include "conntrack/filter.h"
#include "packet/ip.h"

namespace penstock::conntrack {

namespace {

constexpr std::string_view kBeginning = "penstock-connections ";
constexpr std::uint64_t kNanosecondsPerMs = 1'000'000;
constexpr std::uint64_t kLongestMs = std::uint64_t{365} * 86'400 * 1'000;  // more than any timeout
constexpr std::uint16_t kTranslationBits = Connection::kSourceNat | Connection::kDestinationNat;
constexpr std::uint16_t kStatusBits =
    Connection::kExpected | Connection::kSeenReply | Connection::kAssured | Connection::kHelper | kTranslationBits;
constexpr std::uint8_t kMostScale = 14;  // RFC 7323 §2.3

/// Of a fixed length, so that it can be written last.
std::string first_line(std::uint64_t now_ms, std::uint64_t connections) {
  return fmt::format("{}version={} saved_ms={:020} connections={:010}\n", kBeginning, kSavedVersion, now_ms,
                     connections);
}

void append_side(std::string& text, std::string_view name, const TcpSide& side) {
  fmt::format_to(std::back_inserter(text), " {}={},{},{},{},{},{}", name, side.end, side.max_end, side.max_window,
                 side.max_ack, side.scale, side.flags);
}

void append_address(std::string& text, std::string_view name, const Tuple& tuple, const Ipv6Address& address) {
  fmt::format_to(
      std::back_inserter(text), " {}={}", name,
      tuple.ip_version == 4 ? to_string(Ipv4Address{static_cast<std::uint32_t>(address.low)}) : to_string(address));
}

/// Those that are kept. A translation that has come back to where it began (of identifiers of ICMP) is none.
std::uint16_t status_of(const Record& record) noexcept {
  const bool translated = !are_inverse(record.original, record.reply);
  return record.status & (translated ? kStatusBits : kStatusBits & ~kTranslationBits);
}

/// The fields of a line, "key=value", in a fixed order. Remembers the first that is wrong.
class Fields {
 public:
  explicit Fields(std::string_view line) noexcept : rest_(line) {}

  [[nodiscard]] std::string_view take(std::string_view key) noexcept {
    if (!wrong_.empty()) return {};
    const std::size_t end = std::min(rest_.find(' '), rest_.size());
    const std::string_view field = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (field.size() > key.size() && field.starts_with(key) && field[key.size()] == '=')
      return field.substr(key.size() + 1);
    refuse(key);
    return {};
  }
  template <typename Number>
  [[nodiscard]] Number number(std::string_view key, Number most = static_cast<Number>(-1)) noexcept {
    const std::optional<Number> read = parse_decimal<Number>(take(key), most);
    if (!read) refuse(key);
    return read.value_or(0);
  }
  [[nodiscard]] Ipv6Address address(std::string_view key, std::uint8_t& ip_version) {
    const std::string_view text = take(key);
    if (const auto ipv4 = parse_ipv4(text)) {
      ip_version = 4;
      return {0, ipv4->bits};
    }
    const auto ipv6 = parse_ipv6(text);
    if (!ipv6) refuse(key);
    ip_version = 6;
    return ipv6.value_or(Ipv6Address());
  }
  void refuse(std::string_view key) noexcept {
    if (wrong_.empty()) wrong_ = key;
  }
  /// The key of the first wrong field; "": there is none.
  [[nodiscard]] std::string_view wrong() noexcept {
    if (!rest_.empty()) refuse("end of the line");
    return wrong_;
  }

 private:
  std::string_view rest_;
  std::string_view wrong_;
};

/// Numbers with commas between them.
class Numbers {
 public:
  Numbers(Fields& fields, std::string_view key) noexcept : fields_(fields), key_(key), rest_(fields.take(key)) {}
  ~Numbers() {
    if (!ended_) fields_.refuse(key_);
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  template <typename Number>
  void next(Number& number, Number most = static_cast<Number>(-1)) noexcept {
    const std::size_t comma = rest_.find(',');
    const std::optional<Number> read = parse_decimal<Number>(rest_.substr(0, comma), most);
    if (!read || ended_) fields_.refuse(key_);
    number = read.value_or(0);
    ended_ = comma == std::string_view::npos;
    rest_.remove_prefix(ended_ ? rest_.size() : comma + 1);
  }

 private:
  Fields& fields_;
  std::string_view key_;
  std::string_view rest_;
  bool ended_ = false;
};

TcpSide read_side(Fields& fields, std::string_view key) noexcept {
  TcpSide side;
  Numbers numbers(fields, key);
  numbers.next(side.end);
  numbers.next(side.max_end);
  numbers.next(side.max_window);
  numbers.next(side.max_ack);
  numbers.next(side.scale, kMostScale);
  numbers.next(side.flags);
  return side;
}

TcpTracking read_tcp(Fields& fields) noexcept {
  TcpTracking tcp;
  tcp.sides[0] = read_side(fields, "original");
  tcp.sides[1] = read_side(fields, "reply");
  Numbers numbers(fields, "last");
  numbers.next(tcp.last_sequence);
  numbers.next(tcp.last_ack);
  numbers.next(tcp.last_end);
  numbers.next(tcp.last_window);
  numbers.next(tcp.last_scale, kMostScale);
  numbers.next(tcp.last_flags);
  std::uint8_t kind = 0, direction = 0;
  numbers.next(kind, static_cast<std::uint8_t>(TcpKind::none));
  numbers.next(direction, static_cast<std::uint8_t>(Direction::reply));
  numbers.next(tcp.retransmissions);
  tcp.last_kind = static_cast<TcpKind>(kind);
  tcp.last_direction = static_cast<Direction>(direction);
  return tcp;
}

TcpState read_state(Fields& fields) noexcept {
  const std::string_view text = fields.take("state");
  const auto* const found = std::ranges::find(kTcpStateNames, text);
  if (text.empty() || found == kTcpStateNames.end()) {
    fields.refuse("state");
    return TcpState::none;
  }
  return static_cast<TcpState>(found - kTcpStateNames.begin());
}

/// Both addresses, of one family.
void read_addresses(Fields& fields, std::string_view source, std::string_view destination, Tuple& tuple) {
  tuple.source = fields.address(source, tuple.ip_version);
  std::uint8_t other_version = 0;
  tuple.destination = fields.address(destination, other_version);
  if (other_version != tuple.ip_version) fields.refuse(destination);
}

/// Of a translated connection. It differs from the inverse of the original's where the status says so, and nowhere
/// else.
Tuple read_reply(Fields& fields, const Tuple& original, std::uint16_t status) {
  Tuple reply;
  reply.protocol = original.protocol;
  read_addresses(fields, "reply_src", "reply_dst", reply);
  if (reply.ip_version != original.ip_version) fields.refuse("reply_src");
  reply.source_port = fields.number<std::uint16_t>("reply_sport");
  reply.destination_port = fields.number<std::uint16_t>("reply_dport");
  // What the other end sees.
  const std::optional<Tuple> seen = inverse_of(reply);
  if (!seen || *seen == original) {
    fields.refuse("reply_dport");
    return reply;
  }
  bool other_source = seen->source != original.source, other_destination = seen->destination != original.destination;
  const bool source_translated = (status & Connection::kSourceNat) != 0;
  const bool destination_translated = (status & Connection::kDestinationNat) != 0;
  if (is_icmp(original)) {
    // Either translation may change the identifier, and none the type.
    if (seen->destination_port != original.destination_port) fields.refuse("reply_dport");
    if ((other_source && !source_translated) || (other_destination && !destination_translated)) fields.refuse("status");
    return reply;
  }
  const bool other_source_port = seen->source_port != original.source_port;
  const bool other_destination_port = seen->destination_port != original.destination_port;
  if (!begins_with_ports(original.protocol) && (other_source_port || other_destination_port))
    fields.refuse("reply_dport");
  other_source |= other_source_port;
  other_destination |= other_destination_port;
  if (other_source != source_translated || other_destination != destination_translated) fields.refuse("status");
  return reply;
}

SavedConnection read_connection(Fields& fields) {
  SavedConnection saved;
  Record& record = saved.record;
  Tuple& tuple = record.original;
  tuple.protocol = fields.number<std::uint8_t>("protocol");
  record.remaining_ns = fields.number<std::uint64_t>("timeout_ms", kLongestMs) * kNanosecondsPerMs;
  read_addresses(fields, "src", "dst", tuple);
  tuple.source_port = fields.number<std::uint16_t>("sport");
  tuple.destination_port = fields.number<std::uint16_t>("dport");
  const std::optional<Tuple> reply = inverse_of(tuple);
  if (!reply) fields.refuse("dport");  // no request of ICMP
  record.reply = reply.value_or(Tuple());
  record.status = fields.number<std::uint16_t>("status");
  const bool has_helper = (record.status & Connection::kHelper) != 0;
  if ((record.status & ~kStatusBits) != 0 || (has_helper && tuple.protocol != ip_protocol::kTcp))
    fields.refuse("status");
  record.mark = fields.number<std::uint32_t>("mark");
  if (reply && (record.status & kTranslationBits) != 0) record.reply = read_reply(fields, tuple, record.status);
  if (tuple.protocol == ip_protocol::kTcp) {
    record.tcp_state = read_state(fields);
    saved.tcp = read_tcp(fields);
  }
  if (tuple.protocol == ip_protocol::kUdp)
    saved.udp_stream_in_ns = fields.number<std::uint64_t>("stream_in_ms", kLongestMs) * kNanosecondsPerMs;
  return saved;
}

Result<std::vector<SavedConnection>> wrong_line(const std::string& name, const Line& line, std::string_view key) {
  return failure(Error{{name, line.number, 0},
                       "not a line of saved connections",
                       fmt::format("a wrong or missing field: {}", key),
                       "the file as penstock wrote it"});
}

}  // namespace

bool is_saved_connections(std::string_view beginning) noexcept { return beginning.starts_with(kBeginning); }

void append_saved(std::string& text, const SavedConnection& saved) {
  const auto& [record, tcp, udp_stream_in_ns] = saved;
  const Tuple& tuple = record.original;
  const std::uint16_t status = status_of(record);
  const auto out = [&text] { return std::back_inserter(text); };
  fmt::format_to(out(), "protocol={} timeout_ms={}", tuple.protocol, record.remaining_ns / kNanosecondsPerMs);
  append_address(text, "src", tuple, tuple.source);
  append_address(text, "dst", tuple, tuple.destination);
  fmt::format_to(out(), " sport={} dport={} status={} mark={}", tuple.source_port, tuple.destination_port, status,
                 record.mark);
  if ((status & kTranslationBits) != 0) {
    append_address(text, "reply_src", tuple, record.reply.source);
    append_address(text, "reply_dst", tuple, record.reply.destination);
    fmt::format_to(out(), " reply_sport={} reply_dport={}", record.reply.source_port, record.reply.destination_port);
  }
  if (tuple.protocol == ip_protocol::kTcp) {
    fmt::format_to(out(), " state={}", name(record.tcp_state));
    append_side(text, "original", tcp.sides[0]);
    append_side(text, "reply", tcp.sides[1]);
    fmt::format_to(out(), " last={},{},{},{},{},{},{},{},{}", tcp.last_sequence, tcp.last_ack, tcp.last_end,
                   tcp.last_window, tcp.last_scale, tcp.last_flags, static_cast<unsigned>(tcp.last_kind),
                   static_cast<unsigned>(tcp.last_direction), tcp.retransmissions);
  }
  if (tuple.protocol == ip_protocol::kUdp)
    fmt::format_to(out(), " stream_in_ms={}", udp_stream_in_ns / kNanosecondsPerMs);
  text += '\n';
}

SavedConnectionsWriter::SavedConnectionsWriter(std::size_t most_bytes)
    : most_bytes_(most_bytes), text_(first_line(0, 0)) {}

void SavedConnectionsWriter::add(const SavedConnection& saved) {
  line_.clear();
  append_saved(line_, saved);
  add_lines(line_, 1);
}

void SavedConnectionsWriter::add_lines(std::string_view lines, std::uint64_t connections) {
  if (left_out_ == 0 && text_.size() + lines.size() <= most_bytes_) {
    text_ += lines;
    written_ += connections;
  } else {
    left_out_ += connections;
  }
}

std::string SavedConnectionsWriter::finish(std::uint64_t now_ms) {
  const std::string first = first_line(now_ms, written_);
  std::ranges::copy(first, text_.begin());
  return std::move(text_);
}

Result<std::vector<SavedConnection>> read_saved_connections(std::string_view text, const std::string& name,
                                                            std::uint64_t now_ms) {
  LineReader lines(text);
  Line line;
  if (!is_saved_connections(text) || !lines.next(line)) {
    return failure(Error{
        {name, 0, 0}, "not a file of saved connections", "", fmt::format("a file that begins with {}", kBeginning)});
  }
  Fields first(line.text.substr(kBeginning.size()));
  const auto version = first.number<std::uint64_t>("version");
  if (version != kSavedVersion) {  // the rest of the line may be anything then
    return failure(Error{{name, 1, 0},
                         "saved connections of another version of the format",
                         fmt::format("{}{}", version, version == 1 ? ", of an earlier penstock" : ""),
                         std::to_string(kSavedVersion)});
  }
  const auto saved_ms = first.number<std::uint64_t>("saved_ms");
  const auto count = first.number<std::uint64_t>("connections");
  if (!first.wrong().empty()) return wrong_line(name, line, first.wrong());
  const std::uint64_t passed_ms = now_ms > saved_ms ? now_ms - saved_ms : 0;
  const std::uint64_t passed_ns = std::min(passed_ms, kLongestMs) * kNanosecondsPerMs;

  std::vector<SavedConnection> connections;
  std::uint64_t read = 0;
  for (; lines.next(line); ++read) {
    Fields fields(line.text);
    SavedConnection saved = read_connection(fields);
    if (!fields.wrong().empty()) return wrong_line(name, line, fields.wrong());
    if (saved.record.remaining_ns <= passed_ns) continue;
    saved.record.remaining_ns -= passed_ns;
    saved.udp_stream_in_ns -= std::min(saved.udp_stream_in_ns, passed_ns);
    connections.push_back(saved);
  }
  if (read != count) {
    return failure(Error{{name, 0, 0},
                         "the saved connections are not complete",
                         std::to_string(read),
                         fmt::format("{}, as its first line says", count)});
  }
  return connections;
}

}  // namespace penstock::conntrack
