// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "classify/classifier.h"
#include "experiments/offload/lookups.h"
#include "experiments/offload/tuple_key.h"

namespace penstock::experiments {
namespace {

using classify::Condition;
using classify::Ruleset;
using classify::Subject;

/// A random value in [low, high].
std::uint32_t draw(std::mt19937_64& random, std::uint32_t low, std::uint32_t high) {
  return static_cast<std::uint32_t>(low + random() % (std::uint64_t{high} - low + 1));
}

/// Sets the field of the tuple that the condition tests, if the condition names its values directly.
void satisfy(const Condition& condition, const Ruleset& rules, std::mt19937_64& random, TupleKey& tuple) {
  if (condition.negated) return;
  const auto port = [&] {
    const classify::PortRange& range = rules.port_ranges[condition.index];
    return static_cast<std::uint16_t>(draw(random, range.low, range.high));
  };
  switch (condition.subject) {
    case Subject::source4: tuple.source = draw(random, condition.low, condition.high); break;
    case Subject::destination4: tuple.destination = draw(random, condition.low, condition.high); break;
    case Subject::source_port: tuple.source_port = port(); break;
    case Subject::destination_port: tuple.destination_port = port(); break;
    case Subject::protocol: tuple.kind = condition.low << classify::kKindDetailBits; break;
    default: break;
  }
}

/// Of every ten keys, so many are of TCP and the others of UDP; empty: as the rules have them.
std::optional<std::uint64_t> tcp_of_ten(Traffic traffic) {
  switch (traffic) {
    case Traffic::tcp: return 9;
    case Traffic::balanced: return 5;
    case Traffic::udp: return 1;
    default: return std::nullopt;
  }
}

std::uint32_t kind_of(std::uint8_t protocol) { return std::uint32_t{protocol} << classify::kKindDetailBits; }

class KeyDraw {
 public:
  explicit KeyDraw(const Ruleset& rules, Traffic traffic) : rules_(rules), tcp_of_ten_(tcp_of_ten(traffic)) {
    for (std::uint32_t i = 0; i < rules.entries.size(); ++i) {
      TupleKey tuple = any(ip_protocol::kTcp);
      meet(rules.entries[i], tuple);
      of_protocol_[static_cast<std::uint8_t>(tuple.kind >> classify::kKindDetailBits)].push_back(i);
      all_.push_back(i);
    }
  }

  /// Every fourth one is of random addresses and ports; the others match a random rule.
  TupleKey operator()(std::size_t index) {
    const std::uint8_t protocol = !tcp_of_ten_ || random_() % 10 < *tcp_of_ten_ ? ip_protocol::kTcp : ip_protocol::kUdp;
    TupleKey tuple = any(protocol);
    const std::vector<std::uint32_t>& entries = tcp_of_ten_ ? of_protocol_[protocol] : all_;
    if (index % 4 != 0 && !entries.empty()) meet(rules_.entries[entries[random_() % entries.size()]], tuple);
    return with_flags(tuple);
  }

  /// From anywhere to a port of a host that no rule but the last one names.
  TupleKey of_flood() {
    TupleKey tuple = any(ip_protocol::kUdp);
    tuple.destination = 0xc0000201;  // 192.0.2.1
    tuple.destination_port = 9;
    return tuple;
  }
  bool one_in_ten() { return random_() % 10 == 0; }

 private:
  TupleKey any(std::uint8_t protocol) {
    TupleKey tuple;
    tuple.source = static_cast<std::uint32_t>(random_());
    tuple.destination = static_cast<std::uint32_t>(random_());
    tuple.source_port = static_cast<std::uint16_t>(draw(random_, 1024, 65535));
    tuple.destination_port = static_cast<std::uint16_t>(draw(random_, 1, 65535));
    tuple.kind = kind_of(protocol);
    return tuple;
  }
  void meet(const classify::Entry& entry, TupleKey& tuple) {
    for (std::uint32_t c = 0; c < entry.condition_count; ++c)
      satisfy(rules_.conditions[entry.first_condition + c], rules_, random_, tuple);
  }
  static TupleKey with_flags(TupleKey tuple) {
    constexpr std::uint32_t kAck = 0x10;
    if (tuple.kind == kind_of(ip_protocol::kTcp)) tuple.kind |= kAck;
    return tuple;
  }

  const Ruleset& rules_;
  const std::optional<std::uint64_t> tcp_of_ten_;
  std::mt19937_64 random_{3};
  std::array<std::vector<std::uint32_t>, 256> of_protocol_;  // rules by the protocol that they name; TCP if none
  std::vector<std::uint32_t> all_;
};

std::vector<TupleKey> draw_keys(const Ruleset& rules, Traffic traffic) {
  KeyDraw next(rules, traffic);
  std::vector<TupleKey> keys(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i)
    keys[i] = traffic == Traffic::flood && !next.one_in_ten() ? next.of_flood() : next(i);
  return keys;
}

class FirewallEngine final : public LookupEngine {
 public:
  FirewallEngine(std::unique_ptr<classify::Classifier> classifier, const Ruleset& rules,
                 std::span<const classify::Key> keys)
      : classifier_(std::move(classifier)), rules_(rules), keys_(keys) {}

  void look_up(std::size_t first, std::size_t count, std::uint32_t* values) const noexcept override {
    classifier_->classify(keys_.subspan(first, count), values);
  }
  DeviceTable to_device() const override {
    DeviceTable device;
    device.firewall = std::make_unique<classify::DeviceTables>(rules_, *classifier_);
    device.view = std::visit([](const auto& view) -> TableView { return view; }, device.firewall->engine());
    return device;
  }
  std::size_t memory_bytes() const noexcept override { return classifier_->memory_bytes(); }

 private:
  std::unique_ptr<classify::Classifier> classifier_;
  const Ruleset& rules_;
  std::span<const classify::Key> keys_;
};

class Firewall final : public LookupWork {
 public:
  Firewall(Ruleset rules, Traffic traffic)
      : rules_(std::move(rules)),
        tuples_(draw_keys(rules_, traffic)),
        linear_{rules_.entries.data(), rules_.conditions.data(), rules_.port_ranges.data(), rules_.ranges6.data(),
                static_cast<std::uint32_t>(rules_.entries.size())} {
    keys_.reserve(tuples_.size());
    for (const TupleKey& tuple : tuples_) keys_.push_back(key_of(tuple));
  }

  std::span<const std::byte> keys() const noexcept override { return std::as_bytes(std::span(tuples_)); }
  Result<std::unique_ptr<LookupEngine>> engine(std::string_view name) const override {
    auto classifier = classify::make_classifier(classify::engine_of(name), rules_);
    if (!classifier) return tl::unexpected(std::move(classifier.error()));
    return std::make_unique<FirewallEngine>(std::move(*classifier), rules_, keys_);
  }
  std::uint32_t expected(std::size_t index) const noexcept override {
    return classify::deciding_entry(linear_, keys_[index]);
  }

 private:
  const Ruleset rules_;
  std::vector<TupleKey> tuples_;
  std::vector<classify::Key> keys_;  // in the form in which the parser leaves them for the CPU twin
  classify::LinearView linear_;
};

}  // namespace

Result<std::unique_ptr<LookupWork>> make_firewall(Ruleset rules, Traffic traffic) {
  return std::make_unique<Firewall>(std::move(rules), traffic);
}

}  // namespace penstock::experiments
