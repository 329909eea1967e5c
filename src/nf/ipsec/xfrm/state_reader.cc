// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/xfrm/state_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text_file.h"
#include "nf/ipsec/xfrm/xfrm_words.h"

namespace penstock::ipsec {

namespace {

/// Words that start a part of an SA after its first two lines, from iproute2's xfrm_state_info_print and
/// xfrm_xfrma_print.
enum class StateWord : std::uint8_t {
  replay_window,
  seq,
  flag,
  extra_flag,
  mark,
  output_mark,
  auth,
  auth_trunc,
  aead,
  enc,
  comp,
  encap,
  coa,
  lastused,
  anti_replay,
  crypto,
  if_id,
  tfcpad,
  sel,
  lifetime,
  stats,
  security,
  dir,
  pcpu_num,
};

struct StateWordEntry {
  std::string_view name;
  StateWord word;
};

constexpr auto kStateWords = std::to_array<StateWordEntry>({
    {"replay-window", StateWord::replay_window},
    {"seq", StateWord::seq},
    {"flag", StateWord::flag},
    {"extra_flag", StateWord::extra_flag},
    {"mark", StateWord::mark},
    {"output-mark", StateWord::output_mark},
    {"auth", StateWord::auth},
    {"auth-trunc", StateWord::auth_trunc},
    {"aead", StateWord::aead},
    {"enc", StateWord::enc},
    {"comp", StateWord::comp},
    {"encap", StateWord::encap},
    {"coa", StateWord::coa},
    {"lastused", StateWord::lastused},
    {"anti-replay", StateWord::anti_replay},
    {"crypto", StateWord::crypto},
    {"if_id", StateWord::if_id},
    {"tfcpad", StateWord::tfcpad},
    {"sel", StateWord::sel},
    {"lifetime", StateWord::lifetime},
    {"stats:", StateWord::stats},
    {"security", StateWord::security},
    {"dir", StateWord::dir},
    {"pcpu-num", StateWord::pcpu_num},
});

struct CipherName {
  std::string_view name;
  Cipher cipher;
  std::size_t salt_bytes;  // at the end of the key
  bool aead;
};

// The kernel's names (net/xfrm/xfrm_algo.c), including older ones.
constexpr auto kCiphers = std::to_array<CipherName>({
    {"cbc(aes)", Cipher::aes_cbc, 0, false},
    {"aes", Cipher::aes_cbc, 0, false},
    {"rfc3686(ctr(aes))", Cipher::aes_ctr, 4, false},
    {"ecb(cipher_null)", Cipher::null, 0, false},
    {"cipher_null", Cipher::null, 0, false},
    {"rfc4106(gcm(aes))", Cipher::aes_gcm, 4, true},
});

struct IntegrityName {
  std::string_view name;
  std::uint64_t bits;  // of the ICV
  Integrity integrity;
};

// The first entry for a name is the kernel's default truncation.
constexpr auto kIntegrities = std::to_array<IntegrityName>({
    {"hmac(sha1)", 96, Integrity::hmac_sha1_96},
    {"sha1", 96, Integrity::hmac_sha1_96},
    {"hmac(sha256)", 96, Integrity::hmac_sha256_96},
    {"hmac(sha256)", 128, Integrity::hmac_sha256_128},
    {"sha256", 96, Integrity::hmac_sha256_96},
    {"sha256", 128, Integrity::hmac_sha256_128},
});

constexpr std::string_view kSupportedCiphers = "cbc(aes), rfc3686(ctr(aes)) or ecb(cipher_null)";
constexpr std::string_view kSupportedAead = "rfc4106(gcm(aes))";
constexpr std::string_view kSupportedIntegrities =
    "hmac(sha1) truncated to 96 bits, hmac(sha256) to 128 or 96, or digest_null";
constexpr std::uint64_t kMostDigestNullBits = 128;
/// The kernel's maximum (XFRMA_REPLAY_ESN_MAX).
constexpr std::uint64_t kMostWindow = 4096;

/// The sequence number context as `ip` prints it.
struct Context {
  bool esn = false;  // long form, also used for windows over 32 without ESN
  std::uint32_t seq = 0, seq_hi = 0, oseq = 0, oseq_hi = 0;
  std::uint32_t window = 0;           // in the long form only
  std::vector<std::uint32_t> bitmap;  // in kernel order
};

/// The kernel's short bitmap has the highest number in bit 0. The long one is a ring of `window` bits: the highest
/// number is at (seq - 1) mod window, and older ones are below it, wrapping around.
std::vector<std::uint32_t> window_of(const Context& context) {
  if (std::ranges::all_of(context.bitmap, [](std::uint32_t word) { return word == 0; })) return {};
  if (!context.esn) return context.bitmap;
  const std::uint32_t highest = (context.seq - 1) % context.window;
  std::vector<std::uint32_t> window((context.window + 31) / 32);
  for (std::uint32_t i = 0; i < context.window; ++i) {
    const std::uint32_t bit = i <= highest ? highest - i : highest + context.window - i;
    window[i / 32] |= (context.bitmap[bit / 32] >> bit % 32 & 1U) << i % 32;
  }
  return window;
}

class StateReader {
 public:
  StateReader(std::string_view text, const std::string& file, std::size_t most)
      : words_(text, file, "SA", most), file_(file) {}

  Result<Read<SecurityAssociations>> read() && {
    while (words_.next_object()) {
      start();
      read_header();
      while (words_.good() && !left_out_ && !words_.at_end()) read_part();
      if (words_.good() && !left_out_) finish();
    }
    if (Errors errors = words_.errors(); !errors.empty()) return failure(std::move(errors));
    return Read<SecurityAssociations>{std::move(states_), words_.all_unsupported()};
  }

 private:
  // In file order.
  void start();
  void read_header();
  void read_part();
  void read_part(StateWord part, const XfrmWord& name);
  void read_flags();
  void read_extra_flags();
  void read_integrity(const XfrmWord& kind, bool cut);
  void read_cipher(const XfrmWord& kind, bool aead);
  [[nodiscard]] Secret read_key(const XfrmWord& algorithm);
  void read_encapsulation();
  void read_context();
  void read_bitmap();
  void read_stats();
  void finish();
  [[nodiscard]] bool check_algorithms();
  void take_context();

  void once(bool& had, const XfrmWord& at, std::string_view what);
  void leave_out(const XfrmWord& at, std::string_view message, std::string_view expected = {});

  XfrmWords words_;
  std::string file_;
  SecurityAssociations states_;
  std::map<std::pair<IpAddress, std::uint32_t>, std::uint32_t> lines_;  // by destination and SPI

  // State of the SA being read.
  SecurityAssociation sa_;
  std::optional<Context> context_;
  XfrmWord spi_word_;
  XfrmWord context_word_;
  bool has_cipher_ = false;
  bool has_integrity_ = false;
  bool has_aead_ = false;
  bool left_out_ = false;
};

void StateReader::start() {
  sa_ = {};
  sa_.line = words_.line();
  context_.reset();
  has_cipher_ = has_integrity_ = has_aead_ = left_out_ = false;
}

void StateReader::read_header() {
  words_.expect("src");
  sa_.source = words_.address();
  words_.expect("dst");
  const XfrmWord destination = words_.peek();
  sa_.destination = words_.address();
  if (words_.good() && is_ipv6(sa_.source) != is_ipv6(sa_.destination)) {
    words_.error(destination, "source and destination are of different address families", "addresses of one family");
  }
  words_.expect("proto");
  const XfrmWord protocol = words_.take("esp");
  if (words_.good() && protocol.text != "esp") return leave_out(protocol, "only ESP is supported");
  words_.expect("spi");
  spi_word_ = words_.peek();
  sa_.spi = words_.number32("an SPI");
  words_.expect("reqid");
  sa_.reqid = words_.number32("a reqid");
  words_.expect("mode");
  const XfrmWord mode = words_.take("transport or tunnel");
  if (!words_.good()) return;
  if (mode.text == "transport") {
    sa_.mode = Mode::transport;
  } else if (mode.text == "tunnel") {
    sa_.mode = Mode::tunnel;
  } else {
    return leave_out(mode, "only transport and tunnel mode are supported");
  }
}

void StateReader::read_part() {
  const XfrmWord name = words_.take("");
  const auto entry = std::ranges::find(kStateWords, name.text, &StateWordEntry::name);
  if (entry == kStateWords.end()) return leave_out(name, "unknown word in an SA");
  read_part(entry->word, name);
}

void StateReader::read_part(StateWord part, const XfrmWord& name) {
  switch (part) {
    case StateWord::replay_window:
      sa_.replay_window = static_cast<std::uint32_t>(words_.number("a window", 0, kMostWindow));
      return;
    case StateWord::seq: static_cast<void>(words_.take("a number")); return;  // of the request for the SA
    case StateWord::flag: return read_flags();
    case StateWord::extra_flag: return read_extra_flags();
    case StateWord::mark:
      if (!words_.mark_is_ours()) leave_out(name, "marks are not supported");
      return;
    case StateWord::output_mark:
      words_.unsupported(name, "output marks are not supported: this mark is ignored");
      static_cast<void>(words_.take("VALUE or VALUE/MASK"));
      return;
    case StateWord::auth: return read_integrity(name, false);
    case StateWord::auth_trunc: return read_integrity(name, true);
    case StateWord::aead: return read_cipher(name, true);
    case StateWord::enc: return read_cipher(name, false);
    case StateWord::comp: return leave_out(name, "compression is not supported");
    case StateWord::encap: return read_encapsulation();
    case StateWord::coa: return leave_out(name, "Mobile IPv6 is not supported");
    case StateWord::lastused: static_cast<void>(words_.time()); return;
    case StateWord::anti_replay: context_word_ = name; return read_context();
    case StateWord::crypto: return words_.offload();  // offload to a NIC, of the kernel's own traffic
    case StateWord::if_id:
      if (words_.number32("a number") != 0) leave_out(name, "xfrm interfaces are not supported");
      return;
    case StateWord::tfcpad: sa_.tfc_bytes = words_.number32("a length"); return;
    case StateWord::sel: sa_.selector = words_.selector(); return;
    case StateWord::lifetime: return words_.lifetime(sa_.lifetimes);
    case StateWord::stats: return read_stats();
    case StateWord::security: return leave_out(name, "security labels are not supported");
    case StateWord::dir: {
      const XfrmWord direction = words_.take("in or out");
      if (direction.text == "in" || direction.text == "out") {
        sa_.direction = direction.text == "in" ? Direction::in : Direction::out;
      } else if (words_.good()) {
        words_.error(direction, "not the direction of an SA", "in or out");
      }
      return;
    }
    case StateWord::pcpu_num: static_cast<void>(words_.take("a number")); return;  // the CPU that it is bound to
  }
}

/// A list without a terminator. `ip -s` prints no space between the last flag and the next word, and appends all flags
/// as bits in parentheses.
void StateReader::read_flags() {
  while (!words_.at_end()) {
    XfrmWord word = words_.peek();
    const bool extra = word.text.ends_with("extra_flag") && word.text != "extra_flag";
    if (extra) word.text.remove_suffix(std::string_view("extra_flag").size());
    if (word.text == "noecn") {
      sa_.no_ecn = true;
    } else if (word.text == "decap-dscp") {
      sa_.decap_dscp = true;
    } else if (word.text == "nopmtudisc") {
      sa_.no_pmtu_discovery = true;
    } else if (word.text == "icmp") {
      sa_.icmp = true;
    } else if (word.text == "af-unspec") {
      sa_.any_family = true;
    } else if (word.text == "esn") {
      sa_.esn = true;
    } else if (word.text != "wildrecv" && word.text != "align4" && !word.text.starts_with("(0x")) {
      return;  // wildrecv concerns only Mobile IPv6, align4 only AH
    }
    static_cast<void>(words_.take(""));
    if (extra) return read_extra_flags();
  }
}

void StateReader::read_extra_flags() {
  while (!words_.at_end()) {
    const XfrmWord word = words_.peek();
    if (word.text == "dont-encap-dscp") {
      sa_.dont_encap_dscp = true;
    } else if (word.text == "oseq-may-wrap") {
      sa_.sequence_may_wrap = true;
    } else if (!word.text.starts_with("(0x")) {
      return;
    }
    static_cast<void>(words_.take(""));
  }
}

void StateReader::once(bool& had, const XfrmWord& at, std::string_view what) {
  if (std::exchange(had, true) && words_.good()) words_.error(at, fmt::format("a second {}", what), "one per SA");
}

void StateReader::read_integrity(const XfrmWord& kind, bool cut) {
  once(has_integrity_, kind, "integrity algorithm");
  const XfrmWord name = words_.take("an algorithm");
  if (!words_.good()) return;
  const bool digest_null = name.text == "digest_null";
  const auto first = std::ranges::find(kIntegrities, name.text, &IntegrityName::name);
  if (!digest_null && first == kIntegrities.end())
    return leave_out(name, "this integrity algorithm is not supported", kSupportedIntegrities);
  sa_.integrity_key = read_key(name);
  const XfrmWord bits_word = cut ? words_.peek() : name;
  std::uint64_t bits = 0;
  if (cut) {
    bits = words_.number("a number of bits", 0, 512);
  } else if (!digest_null) {
    bits = first->bits;
  }
  if (!words_.good() || left_out_) return;
  if (digest_null) {
    if (bits % 8 != 0 || bits > kMostDigestNullBits) {
      return leave_out(bits_word, "digest_null is supported only with a length in whole bytes, up to 128 bits");
    }
    if (!sa_.integrity_key.empty()) return words_.error(name, "a key for digest_null, which takes none", "no key");
    sa_.integrity = Integrity::digest_null;
  } else {
    const auto found = std::ranges::find_if(
        kIntegrities, [&](const IntegrityName& entry) { return entry.name == name.text && entry.bits == bits; });
    if (found == kIntegrities.end()) {
      return leave_out(bits_word, fmt::format("{} truncated to this length is not supported", name.text),
                       kSupportedIntegrities);
    }
    if (sa_.integrity_key.empty())
      return words_.error(name, "an algorithm without a key", "0x and the hexadecimal digits of the key");
    sa_.integrity = found->integrity;
  }
  sa_.icv_bytes = static_cast<std::uint8_t>(bits / 8);
}

void StateReader::read_cipher(const XfrmWord& kind, bool aead) {
  once(aead ? has_aead_ : has_cipher_, kind, aead ? "AEAD algorithm" : "cipher");
  const XfrmWord name = words_.take("an algorithm");
  if (!words_.good()) return;
  const auto cipher = std::ranges::find_if(
      kCiphers, [&](const CipherName& entry) { return entry.name == name.text && entry.aead == aead; });
  if (cipher == kCiphers.end())
    return leave_out(name, "this cipher is not supported", aead ? kSupportedAead : kSupportedCiphers);
  const XfrmWord key_word = words_.peek();
  const Secret key = read_key(name);
  if (!words_.good() || left_out_) return;
  sa_.cipher = cipher->cipher;
  const std::span<const std::uint8_t> bytes = key.bytes();
  if (cipher->cipher == Cipher::null) {
    if (!bytes.empty()) words_.error(name, "a key for a cipher that takes none", "no key");
    return;
  }
  const std::size_t salt = cipher->salt_bytes;
  if (bytes.size() != 16 + salt && bytes.size() != 24 + salt && bytes.size() != 32 + salt) {
    return words_.error_found({key_word.text, key_word.line, key_word.column},
                              fmt::format("not a key of {}", cipher->name), fmt::format("{} bytes", bytes.size()),
                              fmt::format("{}, {} or {} bytes{}", 16 + salt, 24 + salt, 32 + salt,
                                          salt == 0 ? "" : ", of which the last 4 are the salt"));
  }
  sa_.cipher_key = Secret(bytes.first(bytes.size() - salt));
  sa_.salt = Secret(bytes.last(salt));
  if (!aead) return;
  const XfrmWord bits_word = words_.peek();
  const std::uint64_t bits = words_.number("a number of bits", 0, 512);
  if (!words_.good()) return;
  if (bits != 64 && bits != 96 && bits != 128) {
    return words_.error(bits_word, "not an ICV length of AES-GCM", "64, 96 or 128");
  }
  sa_.icv_bytes = static_cast<std::uint8_t>(bits / 8);
}

/// The key after an algorithm: empty if it takes none, otherwise hex digits, with `ip -s` followed by "(N bits)".
Secret StateReader::read_key(const XfrmWord& algorithm) {
  const XfrmWord word = words_.peek();
  if (word.text == "<<Keys") {
    words_.error_found(word, "the keys are not in this file", "'<<Keys hidden>>'", "`ip xfrm state` without nokeys");
    return {};
  }
  if (!word.text.starts_with("0x")) return {};
  static_cast<void>(words_.take(""));
  const std::string_view digits = word.text.substr(2);
  // The message must not show any of it.
  if (digits.size() % 2 != 0) {
    words_.error_found(word, "not a key", fmt::format("{} digits", digits.size()), "an even number of them");
    return {};
  }
  if (digits.size() / 2 > Secret::kCapacity) {
    leave_out(algorithm, fmt::format("a key over {} bytes is not supported", Secret::kCapacity));
    return {};
  }
  std::array<std::uint8_t, Secret::kCapacity> bytes{};
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const char c = digits[i];
    const int value = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (value < 0) {
      wipe(bytes.data(), bytes.size());
      const auto at = static_cast<std::uint32_t>(word.column + 2 + i);
      words_.error_found({{}, word.line, at}, "not a key", "a character that is not a hexadecimal digit",
                         "0 to 9, a to f");
      return {};
    }
    bytes[i / 2] = static_cast<std::uint8_t>(bytes[i / 2] << 4 | value);
  }
  Secret key(std::span<const std::uint8_t>(bytes.data(), digits.size() / 2));
  wipe(bytes.data(), bytes.size());
  if (words_.peek().text.starts_with('(')) {
    static_cast<void>(words_.take(""));
    words_.expect("bits)");
  }
  return key;
}

void StateReader::read_encapsulation() {
  words_.expect("type");
  const XfrmWord type = words_.take("espinudp");
  if (words_.good() && type.text != "espinudp") {
    return leave_out(type, "only espinudp encapsulation (RFC 3948) is supported");
  }
  UdpEncapsulation udp;
  words_.expect("sport");
  udp.source_port = static_cast<std::uint16_t>(words_.number("a port", 0, 0xffff));
  words_.expect("dport");
  udp.destination_port = static_cast<std::uint16_t>(words_.number("a port", 0, 0xffff));
  words_.expect("addr");
  const XfrmWord address = words_.peek();
  udp.original = words_.address();
  if (words_.good() && is_ipv6(udp.original) != is_ipv6(sa_.destination)) {
    words_.error(address, "an address of a different family than the SA", is_ipv6(sa_.destination) ? "IPv6" : "IPv4");
  }
  sa_.udp = udp;
}

/// "context: seq …, oseq …, bitmap …", or "esn context:" with the halves for the SA's direction, and the window.
void StateReader::read_context() {
  Context context;
  context.esn = words_.accept("esn");
  words_.expect("context:");
  context_ = std::move(context);
  while (!words_.at_end()) {
    const auto number = [&](std::uint32_t& to) {
      static_cast<void>(words_.take(""));
      to = words_.number32("a 32-bit number");
    };
    const std::string_view name = words_.peek().text;
    if (name == "seq") {
      number(context_->seq);
    } else if (name == "seq-hi") {
      number(context_->seq_hi);
    } else if (name == "oseq") {
      number(context_->oseq);
    } else if (name == "oseq-hi") {
      number(context_->oseq_hi);
    } else if (name == "bitmap") {
      number(context_->bitmap.emplace_back());
    } else if (name == "replay_window") {
      static_cast<void>(words_.take(""));
      context_->window = static_cast<std::uint32_t>(words_.number("a window", 0, kMostWindow));
    } else if (name == "bitmap-length") {
      return read_bitmap();
    } else {
      return;
    }
  }
}

/// The kernel's words, last one first.
void StateReader::read_bitmap() {
  static_cast<void>(words_.take(""));
  const XfrmWord length = words_.peek();
  const auto count = words_.number("a number of words", 0, kMostWindow / 32);
  if (words_.good() && count * 32 < context_->window) {
    return words_.error(length, "a bitmap shorter than the window", "a word for every 32 numbers");
  }
  std::vector<std::uint32_t>& bitmap = context_->bitmap;
  bitmap.assign(count, 0);
  for (auto word = bitmap.rbegin(); words_.good() && word != bitmap.rend(); ++word) {
    const XfrmWord digits = words_.take("eight digits of the bitmap");
    const auto [end, error] = std::from_chars(digits.text.data(), digits.text.data() + digits.text.size(), *word, 16);
    if (words_.good() && (digits.text.size() != 8 || error != std::errc{} || end != digits.text.end())) {
      words_.error_found(digits, "not a word of the bitmap", fmt::format("{} characters", digits.text.size()),
                         "eight digits");
    }
  }
}

void StateReader::read_stats() {
  for (const std::string_view name : {"replay-window", "replay", "failed"}) {
    words_.expect(name);
    static_cast<void>(words_.number32("a count"));
  }
}

bool StateReader::check_algorithms() {
  const XfrmWord whole{{}, sa_.line, 0};
  if (!has_cipher_ && !has_integrity_ && !has_aead_) {
    leave_out(whole, "an SA without algorithms, for which the kernel has no keys yet");
  } else if (has_aead_ && (has_cipher_ || has_integrity_)) {
    words_.error(whole, "an AEAD algorithm together with another algorithm", "aead alone, or enc and auth-trunc");
  } else if (!has_aead_ && !has_cipher_) {
    words_.error(whole, "an ESP SA without a cipher", "enc, or enc ecb(cipher_null) for no encryption");
  } else if (!has_aead_ && !has_integrity_) {
    leave_out(whole, "a cipher without integrity (auth-trunc) is not supported");
  }
  return words_.good() && !left_out_;
}

void StateReader::take_context() {
  if (!context_) return;
  const Context& context = *context_;
  if (context.esn) sa_.replay_window = context.window;
  if (!sa_.esn && (context.seq_hi != 0 || context.oseq_hi != 0)) {
    return words_.error(context_word_, "sequence numbers over 2^32 without ESN", "flag esn");
  }
  sa_.sequence.sent = std::uint64_t{context.oseq_hi} << 32 | context.oseq;
  sa_.sequence.received = std::uint64_t{context.seq_hi} << 32 | context.seq;
  if (sa_.replay_window != 0 && sa_.sequence.received != 0) sa_.sequence.window = window_of(context);
}

void StateReader::finish() {
  if (sa_.spi == 0) return leave_out(spi_word_, "an SA without an SPI, for which the kernel has no keys yet");
  if (!check_algorithms()) return;
  take_context();
  if (!words_.good()) return;
  const auto [first, added] = lines_.try_emplace({sa_.destination, sa_.spi}, sa_.line);
  if (!added) {
    return words_.error_found(spi_word_, "a second SA with this SPI and destination", "",
                              fmt::format("one; the first is in line {}", first->second));
  }
  states_.push_back(std::move(sa_));
}

void StateReader::leave_out(const XfrmWord& at, std::string_view message, std::string_view expected) {
  if (!words_.good() || std::exchange(left_out_, true)) return;
  words_.unsupported(at, fmt::format("{}: this SA is left out", message), expected);
}

}  // namespace

Result<Read<SecurityAssociations>> read_states(const std::string& path, std::size_t most) {
  auto text = read_lines(path);
  if (!text) return failure(std::move(text).error());
  auto states = parse_states(*text, input_name(path), most);
  wipe(text->data(), text->size());
  return states;
}

Result<Read<SecurityAssociations>> parse_states(std::string_view text, const std::string& file, std::size_t most) {
  return StateReader(text, file, most).read();
}

}  // namespace penstock::ipsec
