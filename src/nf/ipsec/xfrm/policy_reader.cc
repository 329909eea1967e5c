// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/ipsec/xfrm/policy_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text_file.h"
#include "nf/ipsec/xfrm/xfrm_words.h"

namespace penstock::ipsec {

namespace {

/// Words that may follow a policy's selector, from iproute2's xfrm_policy_info_print and xfrm_xfrma_print.
enum class PolicyWord : std::uint8_t {
  dir,
  socket,
  action,
  index,
  priority,
  ptype,
  share,
  flag,
  tmpl,
  lifetime,
  mark,
  if_id,
  crypto,
  lastused,
  security,
};

struct PolicyWordEntry {
  std::string_view name;
  PolicyWord word;
};

constexpr auto kPolicyWords = std::to_array<PolicyWordEntry>({
    {"dir", PolicyWord::dir},
    {"socket", PolicyWord::socket},
    {"action", PolicyWord::action},
    {"index", PolicyWord::index},
    {"priority", PolicyWord::priority},
    {"ptype", PolicyWord::ptype},
    {"share", PolicyWord::share},
    {"flag", PolicyWord::flag},
    {"tmpl", PolicyWord::tmpl},
    {"lifetime", PolicyWord::lifetime},
    {"mark", PolicyWord::mark},
    {"if_id", PolicyWord::if_id},
    {"crypto", PolicyWord::crypto},
    {"lastused", PolicyWord::lastused},
    {"security", PolicyWord::security},
});

/// The kernel's XFRM_POLICY_CPU_ACQUIRE, which `ip` prints as a number. It only affects how the kernel requests SAs.
constexpr std::string_view kCpuAcquire = "4";

class PolicyReader {
 public:
  PolicyReader(std::string_view text, const std::string& file, std::size_t most) : words_(text, file, "policy", most) {}

  Result<Read<Policies>> read() && {
    while (words_.next_object()) {
      policy_ = {};
      policy_.line = words_.line();
      has_direction_ = sub_ = blocks_ = left_out_ = false;
      policy_.selector = words_.selector();
      while (words_.good() && !left_out_ && !words_.at_end()) read_part();
      if (words_.good() && !left_out_) finish();
    }
    if (Errors errors = words_.errors(); !errors.empty()) return failure(in_file_order(std::move(errors)));
    // Oldest first; policies of `sub` precede those of `main`.
    std::ranges::reverse(policies_);
    std::ranges::stable_sort(policies_, {}, [](const Ranked& policy) {
      return std::pair{!policy.sub, policy.policy.priority};
    });
    Policies policies;
    policies.reserve(policies_.size());
    for (Ranked& policy : policies_) policies.push_back(std::move(policy.policy));
    return Read<Policies>{std::move(policies), in_file_order(words_.all_unsupported()), harmless()};
  }

 private:
  struct Ranked {
    Policy policy;
    bool sub;  // of the kernel's sub-policy table, which it searches first
  };

  /// A note on skipped socket policies; forwarded packets belong to no socket.
  [[nodiscard]] Errors harmless() const {
    if (sockets_ == 0) return {};
    return {{words_.place(first_socket_), fmt::format("socket policies are left out ({})", sockets_),
             in_quotes(first_socket_.text), ""}};
  }

  // In file order.
  void read_part();
  void read_part(PolicyWord part, const XfrmWord& name);
  void read_direction();
  void read_action();
  void read_flags();
  void read_template();
  void read_mode(Template& wanted);
  void read_level(Template& wanted);
  void finish();

  /// Keeps the policy and makes it block everything that it selects.
  void block(const XfrmWord& at, std::string_view message);
  void leave_out(const XfrmWord& at, std::string_view message);

  XfrmWords words_;
  std::vector<Ranked> policies_;
  std::size_t sockets_ = 0;
  XfrmWord first_socket_;

  // State of the policy being read.
  Policy policy_;
  bool has_direction_ = false;
  bool sub_ = false;
  bool blocks_ = false;
  bool left_out_ = false;
};

void PolicyReader::read_part() {
  const XfrmWord name = words_.take("");
  const auto entry = std::ranges::find(kPolicyWords, name.text, &PolicyWordEntry::name);
  if (entry != kPolicyWords.end()) return read_part(entry->word, name);
  // The word may narrow the selector, so what the policy would select without it is blocked. The values after it are
  // not interpreted either.
  block(name, "unknown word in a policy");
}

void PolicyReader::read_part(PolicyWord part, const XfrmWord& name) {
  switch (part) {
    case PolicyWord::dir: return read_direction();
    case PolicyWord::socket:
      if (sockets_++ == 0) first_socket_ = name;
      left_out_ = true;
      return;
    case PolicyWord::action: return read_action();
    case PolicyWord::index: policy_.index = words_.number32("an index"); return;
    case PolicyWord::priority: policy_.priority = words_.number32("a priority"); return;
    case PolicyWord::ptype: {
      const XfrmWord type = words_.take("main");
      if (!words_.good() || type.text == "main") return;
      sub_ = true;
      return block(type, "only policies of type main are supported");
    }
    case PolicyWord::share: static_cast<void>(words_.take("any")); return;  // for SAs that a daemon would create
    case PolicyWord::flag: return read_flags();
    case PolicyWord::tmpl: return read_template();
    case PolicyWord::lifetime: return words_.lifetime(policy_.lifetimes);
    case PolicyWord::mark:
      if (!words_.mark_is_ours()) leave_out(name, "marks are not supported");
      return;
    case PolicyWord::if_id:
      if (words_.number32("a number") != 0) leave_out(name, "xfrm interfaces are not supported");
      return;
    case PolicyWord::crypto: return words_.offload();  // offload to a NIC, of the kernel's own traffic
    case PolicyWord::lastused: static_cast<void>(words_.time()); return;
    case PolicyWord::security:
      words_.expect("context");
      static_cast<void>(words_.take("a label"));
      return block(name, "security labels are not supported");
  }
}

void PolicyReader::read_direction() {
  const XfrmWord direction = words_.take("out, in or fwd");
  if (!words_.good()) return;
  if (std::exchange(has_direction_, true)) return words_.error(direction, "a second direction", "one per policy");
  if (direction.text == "out") {
    policy_.direction = Direction::out;
  } else if (direction.text == "in") {
    policy_.direction = Direction::in;
  } else if (direction.text == "fwd") {
    policy_.direction = Direction::forward;
  } else {
    words_.error(direction, "not a direction", "out, in or fwd");
  }
}

void PolicyReader::read_action() {
  const XfrmWord action = words_.take("allow or block");
  if (action.text == "block") {
    policy_.action = PolicyAction::block;
  } else if (words_.good() && action.text != "allow") {
    words_.error(action, "not an action", "allow or block");
  }
}

/// A list without a terminator; `ip -s` appends all flags as bits in parentheses.
void PolicyReader::read_flags() {
  while (!words_.at_end()) {
    const XfrmWord word = words_.peek();
    if (word.text == "icmp") {
      policy_.icmp = true;
    } else if (word.text != "localok" && word.text != kCpuAcquire && !word.text.starts_with("(0x")) {
      return;  // localok: the host's own sockets may override the policy
    }
    static_cast<void>(words_.take(""));
  }
}

void PolicyReader::read_template() {
  Template wanted;
  words_.expect("src");
  wanted.source = words_.address();
  words_.expect("dst");
  const XfrmWord destination = words_.peek();
  wanted.destination = words_.address();
  if (words_.good() && is_ipv6(wanted.source) != is_ipv6(wanted.destination)) {
    return words_.error(destination, "source and destination are of different address families",
                        "addresses of one family");
  }
  words_.expect("proto");
  const XfrmWord protocol = words_.take("esp");
  if (words_.good() && protocol.text != "esp") block(protocol, "only ESP is supported");
  if (words_.accept("spi")) wanted.spi = words_.number32("an SPI");
  words_.expect("reqid");
  wanted.reqid = words_.number32("a reqid");
  words_.expect("mode");
  read_mode(wanted);
  if (words_.accept("level")) read_level(wanted);
  // The other words of `ip -s` concern SAs that a daemon would create.
  if (words_.accept("share")) static_cast<void>(words_.take("any"));
  for (const std::string_view mask : {"enc-mask", "auth-mask", "comp-mask"}) {
    if (words_.accept(mask)) static_cast<void>(words_.take("eight digits"));
  }
  if (words_.good()) policy_.templates.push_back(wanted);
}

void PolicyReader::read_mode(Template& wanted) {
  const XfrmWord mode = words_.take("transport or tunnel");
  if (!words_.good()) return;
  if (mode.text == "transport") {
    wanted.mode = Mode::transport;
  } else if (mode.text == "tunnel") {
    wanted.mode = Mode::tunnel;
  } else {
    block(mode, "only transport and tunnel mode are supported");
  }
}

void PolicyReader::read_level(Template& wanted) {
  const XfrmWord level = words_.take("required or use");
  wanted.optional = level.text == "use";
  if (words_.good() && !wanted.optional && level.text != "required") {
    words_.error(level, "not a template level", "required or use");
  }
}

void PolicyReader::finish() {
  const XfrmWord whole{{}, policy_.line, 0};
  if (!has_direction_) return words_.error(whole, "a policy without a direction", "dir out, in or fwd");
  if (blocks_) {
    policy_.action = PolicyAction::block;
    policy_.templates.clear();
  }
  policies_.push_back({std::move(policy_), sub_});
}

void PolicyReader::block(const XfrmWord& at, std::string_view message) {
  if (!words_.good() || std::exchange(blocks_, true)) return;
  words_.unsupported(at, fmt::format("{}: packets that this policy selects are dropped", message));
}

void PolicyReader::leave_out(const XfrmWord& at, std::string_view message) {
  if (!words_.good() || std::exchange(left_out_, true)) return;
  words_.unsupported(at, fmt::format("{}: this policy is left out", message));
}

}  // namespace

Result<Read<Policies>> read_policies(const std::string& path, std::size_t most) {
  const auto text = read_lines(path);
  if (!text) return failure(text.error());
  auto policies = parse_policies(*text, input_name(path), most);
  if (policies && policies->value.empty() && policies->unsupported.empty() && policies->harmless.empty()) {
    return failure({{input_name(path), 0, 0}, "no policies in this file", "", "output of `ip xfrm policy`"});
  }
  return policies;
}

Result<Read<Policies>> parse_policies(std::string_view text, const std::string& file, std::size_t most) {
  return PolicyReader(text, file, most).read();
}

}  // namespace penstock::ipsec
