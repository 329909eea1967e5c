// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/ike/charon_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text_file.h"
#include "base/wipe.h"

namespace penstock::control {

namespace {

constexpr std::uint32_t kMostThreads = 9999;
constexpr std::size_t kMostProblems = 100;
constexpr std::size_t kBytesInARow = 16;
constexpr std::uint16_t kIkePort = 500;  // without UDP encapsulation
/// Of an inbound SA. The peer's packets may overtake each other; this costs 256 bytes for each SA.
constexpr unsigned kReplayWindow = 2048;

struct Encryption {
  std::string_view charon, xfrm;
  unsigned salt_bytes;
  unsigned icv_bits;  // of an AEAD cipher
};
constexpr auto kEncryptions = std::to_array<Encryption>({
    {"AES_CBC", "enc cbc(aes)", 0, 0},
    {"AES_CTR", "enc rfc3686(ctr(aes))", 4, 0},
    {"AES_GCM_8", "aead rfc4106(gcm(aes))", 4, 64},
    {"AES_GCM_12", "aead rfc4106(gcm(aes))", 4, 96},
    {"AES_GCM_16", "aead rfc4106(gcm(aes))", 4, 128},
});

struct Integrity {
  std::string_view charon, xfrm;
  unsigned icv_bits, key_bytes;
};
constexpr auto kIntegrities = std::to_array<Integrity>({
    {"HMAC_SHA1_96", "auth-trunc hmac(sha1)", 96, 20},
    {"HMAC_SHA2_256_128", "auth-trunc hmac(sha256)", 128, 32},
});

const Encryption* encryption_of(std::string_view name) {
  const auto found = std::ranges::find(kEncryptions, name, &Encryption::charon);
  return found == kEncryptions.end() ? nullptr : &*found;
}

const Integrity* integrity_of(std::string_view name) {
  const auto found = std::ranges::find(kIntegrities, name, &Integrity::charon);
  return found == kIntegrities.end() ? nullptr : &*found;
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

template <typename Number>
bool take_number(std::string_view& text, Number& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string_view take_until(std::string_view& text, std::string_view end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(std::min(at + end.size(), text.size()));
  return part;
}

std::optional<ipsec::IpAddress> address_of(std::string_view text) {
  if (const auto v4 = parse_ipv4(text)) return *v4;
  if (const auto v6 = parse_ipv6(text)) return *v6;
  return {};
}

/// "from PEER[PORT] to HERE[PORT] (…": the two ports.
bool read_ports(std::string_view text, std::uint16_t& peer, std::uint16_t& here) {
  take_until(text, "[");
  if (!take_number(text, peer)) return false;
  take_until(text, " to ");
  take_until(text, "[");
  return take_number(text, here);
}

/// "  using AES_CBC for encryption"
std::string_view algorithm_in(std::string_view text, std::string_view purpose) {
  if (!take(text, "  using ") || !text.ends_with(purpose)) return {};
  text.remove_suffix(purpose.size());
  return text;
}

void add_hex(std::string& text, const ipsec::Secret& secret) {
  text += "0x";
  for (const std::uint8_t byte : secret.bytes()) fmt::format_to(std::back_inserter(text), "{:02x}", byte);
}

/// No part of a text that is long enough to be a key, or that a terminal would act on.
std::string shown(std::string_view text) { return in_quotes(text.substr(0, 40)); }

}  // namespace

void CharonLog::add(std::string_view line, std::uint64_t offset) {
  // Only what begins like this is charon's own: texts of the peer are in the middle of lines, which charon breaks up.
  std::uint32_t number = 0;
  if (!take_number(line, number) || number > kMostThreads || line.size() < 6 || line[0] != '[' || line[4] != ']' ||
      line[5] != ' ')
    return;
  const std::string_view group = line.substr(1, 3);
  std::string_view text = line.substr(6);
  if (text.starts_with('<') && text.find("> ") != std::string_view::npos) take_until(text, "> ");  // ike_name = yes
  Thread& thread = threads_[number];
  if (group == "CHD") return add_child_line(thread, text, offset);
  thread.reading.reset();
  if (group == "LIB" && take(text, "loaded plugins: ")) {  // a daemon that has started has no SAs
    changed_ |= !children_.empty();
    children_.clear();
    threads_.clear();
    encapsulates_ = text.find("kernel-libipsec") != std::string_view::npos;
  } else if (group == "NET" && take(text, "received packet: from ")) {
    thread = {};
    thread.begins_at = offset;
    if (!read_ports(text, thread.peer_port, thread.port)) thread.port = 0;
  } else if (group == "ENC" && take(text, "parsed ")) {
    take_until(text, " ");  // the exchange
    if (text.starts_with("request ")) thread.initiator = false;
    if (text.starts_with("response ")) thread.initiator = true;
  } else if (group == "CFG" && take(text, "selected proposal: ESP:")) {
    thread.esn.reset();
    if (text.ends_with("/NO_EXT_SEQ")) {
      thread.esn = false;
    } else if (text.ends_with("/EXT_SEQ")) {
      thread.esn = true;
    }
  }
}

void CharonLog::begin_file() {
  threads_.clear();
  for (auto& entry : children_) entry.second.begins_at = 0;
}

void CharonLog::add_child_line(Thread& thread, std::string_view text, std::uint64_t offset) {
  if (thread.reading && text.starts_with(' ') && !text.starts_with("  using ") && !text.starts_with("  SPI "))
    return add_key_bytes(thread, text);
  thread.reading.reset();
  if (text.starts_with("CHILD_SA ")) return change_state(thread, text, offset);
  if (const auto name = algorithm_in(text, " for encryption"); !name.empty()) thread.encryption = name;
  if (const auto name = algorithm_in(text, " for integrity"); !name.empty()) thread.integrity = name;
  if (text.starts_with("  SPI ")) return add_sa(thread, text);
  thread.adding = Adding::nothing;
  if (text == "adding inbound ESP SA") thread.adding = Adding::inbound;
  if (text == "adding outbound ESP SA") thread.adding = Adding::outbound;
  if (text == "registering outbound ESP SA") thread.adding = Adding::registered;
  begin_key(thread, text);
}

/// "CHILD_SA net{2} state change: CREATED => INSTALLING"
void CharonLog::change_state(Thread& thread, std::string_view text, std::uint64_t offset) {
  constexpr std::string_view kChange = "} state change: ";
  const std::size_t change = text.rfind(kChange);
  const std::size_t brace = text.rfind('{', change);
  if (change == std::string_view::npos || brace == std::string_view::npos || !take(text, "CHILD_SA ")) return;
  const std::string_view name = text.substr(0, brace - std::string_view("CHILD_SA ").size());
  std::string_view rest = text.substr(name.size() + 1);
  std::uint32_t id = 0;
  if (!take_number(rest, id) || !take(rest, kChange)) return;
  if (rest.ends_with(" => DESTROYING")) return remove(id);
  if (rest.ends_with(" => UPDATING") && children_.contains(id)) {
    return refuse(id, "charon changes its addresses or ports, which is not followed", "MOBIKE, or a new NAT mapping",
                  "mobike = no, and a peer that keeps its address");
  }
  if (!rest.ends_with(" => INSTALLING")) return;
  remove(id);
  for (ipsec::Secret& key : thread.keys) key.clear();
  thread.encryption.clear();
  thread.integrity.clear();
  thread.installing = id;
  if (thread.port == 0) thread.begins_at = offset;
  Child child;
  child.name = name.substr(0, 100);
  child.begins_at = thread.begins_at;
  children_.emplace(id, std::move(child));
  const auto reqid = reqids_.find(name);
  if (reqid == reqids_.end())
    return refuse(id, "a child that no --child names", shown(name), "--child NAME=REQID for each child to carry");
  if (children_.size() > kMostChildren)
    return refuse(id, "too many CHILD_SAs", "", fmt::format("at most {}", kMostChildren));
  children_.at(id).reqid = reqid->second;
}

/// "encryption initiator key => 20 bytes @ 0x7fb61c044660"
void CharonLog::begin_key(Thread& thread, std::string_view text) {
  static constexpr auto kNames =
      std::to_array<std::string_view>({"encryption initiator key => ", "encryption responder key => ",
                                       "integrity initiator key => ", "integrity responder key => "});
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    std::string_view rest = text;
    std::size_t bytes = 0;
    if (!take(rest, kNames[i]) || !take_number(rest, bytes) || !take(rest, " bytes")) continue;
    thread.keys[i].clear();
    thread.key_bytes = bytes;
    if (bytes <= ipsec::Secret::kCapacity) thread.reading = static_cast<Key>(i);
  }
}

/// "   0: D4 DB 02 61 …  ..a": up to 16 bytes, then as text.
void CharonLog::add_key_bytes(Thread& thread, std::string_view text) {
  ipsec::Secret& key = thread.keys[static_cast<std::size_t>(*thread.reading)];
  std::array<std::uint8_t, ipsec::Secret::kCapacity> bytes{};
  std::size_t count = key.size();
  std::ranges::copy(key.bytes(), bytes.begin());
  const std::size_t row_end = std::min(count + kBytesInARow, thread.key_bytes);
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::size_t row = 0;
  bool good = take_number(text, row) && row == count && take(text, ":");
  for (; good && count < row_end; ++count) {
    good = text.size() >= 3 && text[0] == ' ';
    if (!good) break;
    std::string_view digits = text.substr(1, 2);
    good = take_number(digits, bytes[count], 16) && digits.empty();
    text.remove_prefix(3);
  }
  if (good) {
    key = ipsec::Secret(std::span(bytes).first(count));
  } else {
    key.clear();
  }
  if (!good || count == thread.key_bytes) thread.reading.reset();
  wipe(bytes.data(), bytes.size());
}

/// "  SPI 0x0a5ca9d1, src 192.0.2.2 dst 192.0.2.1"
void CharonLog::add_sa(Thread& thread, std::string_view text) {
  const Adding adding = std::exchange(thread.adding, Adding::nothing);
  Sa sa;
  if (adding == Adding::nothing || !take(text, "  SPI 0x") || !take_number(text, sa.spi, 16) || !take(text, ", src "))
    return;
  const auto source = address_of(take_until(text, " dst "));
  const auto destination = address_of(text);
  if (!source || !destination || source->index() != destination->index() || sa.spi == 0) return;
  sa.source = *source;
  sa.destination = *destination;
  if (adding == Adding::outbound) {
    // Perhaps one that was registered by an earlier message.
    const auto registered = std::ranges::find_if(children_, [&](const auto& entry) {
      const std::optional<Sa>& out = entry.second.out;
      return out && out->spi == sa.spi && out->destination == sa.destination;
    });
    if (registered != children_.end()) return begin_to_send(registered->second);
  }
  if (!thread.installing) return;
  const auto found = children_.find(*thread.installing);
  if (found == children_.end()) return;  // refused
  Child& child = found->second;
  if (adding == Adding::inbound) return add_inbound(thread, child, std::move(sa));
  if (!child.out || child.out->spi != 0) return;
  child.out->spi = sa.spi;
  child.out->source = sa.source;
  child.out->destination = sa.destination;
  if (adding == Adding::outbound) begin_to_send(child);
}

/// The first SA of a CHILD_SA: all that the log must say about both is checked and taken here.
void CharonLog::add_inbound(Thread& thread, Child& child, Sa sa) {
  if (child.in) return;
  const std::uint32_t id = *thread.installing;
  const Encryption* const encryption = encryption_of(thread.encryption);
  const Integrity* const integrity = integrity_of(thread.integrity);
  if (encryption == nullptr) {
    return refuse(id, "this encryption is not supported", shown(thread.encryption),
                  "AES_GCM_16, AES_GCM_12, AES_GCM_8, AES_CBC or AES_CTR");
  }
  const bool aead = encryption->icv_bits != 0;
  if (aead ? !thread.integrity.empty() : integrity == nullptr) {
    return refuse(id, "this integrity algorithm is not supported", shown(thread.integrity),
                  aead ? "none beside AES_GCM" : "HMAC_SHA2_256_128 or HMAC_SHA1_96");
  }
  if (!thread.initiator || !thread.esn) {
    return refuse(id, "the log does not say what was negotiated", "",
                  "lines of the groups net, enc and cfg at level 1, and of chd at level 4");
  }
  if (*thread.esn)
    return refuse(id, "extended sequence numbers are not supported", "EXT_SEQ", "a proposal without esn");
  if (!encapsulates_ || thread.port == kIkePort) {
    return refuse(id, "ESP may lack UDP encapsulation", "no kernel-libipsec",
                  "charon's plugin kernel-libipsec, which encapsulates always, and IKE through port 4500");
  }
  for (std::size_t i = 0; i < thread.keys.size(); ++i) {
    const bool is_integrity = i >= 2;
    const std::size_t bytes = thread.keys[i].size();
    const std::size_t cipher_bytes = bytes - encryption->salt_bytes;
    const bool fits = is_integrity ? bytes == (aead ? 0 : integrity->key_bytes)
                                   : cipher_bytes == 16 || cipher_bytes == 24 || cipher_bytes == 32;
    if (!fits)
      return refuse(id, "the log lacks a key, or part of one", fmt::format("{} bytes", bytes),
                    "the group chd at level 4");
  }
  const bool initiator = *thread.initiator;
  sa.encryption = std::move(thread.keys[initiator ? 1 : 0]);
  sa.integrity = std::move(thread.keys[initiator ? 3 : 2]);
  child.out = Sa{};
  child.out->encryption = std::move(thread.keys[initiator ? 0 : 1]);
  child.out->integrity = std::move(thread.keys[initiator ? 2 : 3]);
  child.encryption = thread.encryption;
  child.integrity = thread.integrity;
  child.peer_port = thread.peer_port;
  child.port = thread.port;
  child.in = std::move(sa);
  changed_ = true;
}

void CharonLog::begin_to_send(Child& child) {
  child.sends_since = ++last_sender_;
  changed_ = true;
}

void CharonLog::remove(std::uint32_t id) {
  const auto found = children_.find(id);
  if (found == children_.end()) return;
  changed_ |= found->second.in.has_value();
  children_.erase(found);
}

void CharonLog::refuse(std::uint32_t id, std::string_view why, std::string found, std::string expected) {
  const std::string name = children_.at(id).name;
  remove(id);
  if (problems_.size() >= kMostProblems) return;
  problems_.push_back({{},
                       fmt::format("CHILD_SA {}{{{}}} is not carried: {}", printable(name), id, why),
                       std::move(found),
                       std::move(expected)});
}

std::size_t CharonLog::outbound() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(children_, [](const auto& entry) { return entry.second.sends_since != 0; }));
}

std::uint64_t CharonLog::needed_from(std::uint64_t otherwise) const noexcept {
  for (const auto& entry : children_) otherwise = std::min(otherwise, entry.second.begins_at);
  return otherwise;
}

std::string CharonLog::state() const {
  std::vector<const Child*> senders;
  std::vector<const Child*> receivers;
  for (const auto& entry : children_) {
    if (entry.second.in) receivers.push_back(&entry.second);
    if (entry.second.sends_since != 0) senders.push_back(&entry.second);
  }
  std::ranges::sort(senders, std::greater<>(), &Child::sends_since);
  std::string text;
  text.reserve((senders.size() + receivers.size()) * 512 + 512);  // keys are not copied while it grows
  text += kStateHeading;
  const auto add = [&text](const Child& child, const Sa& sa, bool inbound) {
    const Encryption& encryption = *encryption_of(child.encryption);
    auto out = std::back_inserter(text);
    fmt::format_to(
        out, "src {} dst {}\n\tproto esp spi 0x{:08x} reqid {} mode tunnel\n\treplay-window {} flag af-unspec\n\t",
        ipsec::to_string(sa.source), ipsec::to_string(sa.destination), sa.spi, child.reqid,
        inbound ? kReplayWindow : 0);
    if (const Integrity* const integrity = integrity_of(child.integrity); integrity != nullptr) {
      fmt::format_to(out, "{} ", integrity->xfrm);
      add_hex(text, sa.integrity);
      fmt::format_to(out, " {}\n\t", integrity->icv_bits);
    }
    fmt::format_to(out, "{} ", encryption.xfrm);
    add_hex(text, sa.encryption);
    if (encryption.icv_bits != 0) fmt::format_to(out, " {}", encryption.icv_bits);
    fmt::format_to(out, "\n\tencap type espinudp sport {} dport {} addr {}\n\tdir {}\n",
                   inbound ? child.peer_port : child.port, inbound ? child.port : child.peer_port,
                   ipsec::is_ipv6(sa.destination) ? "::" : "0.0.0.0", inbound ? "in" : "out");
  };
  for (const Child* const child : senders) add(*child, *child->out, false);
  for (const Child* const child : receivers) add(*child, *child->in, true);
  return text;
}

}  // namespace penstock::control
