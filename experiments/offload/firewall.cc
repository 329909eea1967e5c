// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <random>
#include <utility>

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

std::vector<TupleKey> draw_keys(const Ruleset& rules) {
  constexpr std::uint32_t kAck = 0x10;
  std::mt19937_64 random(3);
  std::vector<TupleKey> keys(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) {
    TupleKey& tuple = keys[i];
    tuple.source = static_cast<std::uint32_t>(random());
    tuple.destination = static_cast<std::uint32_t>(random());
    tuple.source_port = static_cast<std::uint16_t>(draw(random, 1024, 65535));
    tuple.destination_port = static_cast<std::uint16_t>(draw(random, 1, 65535));
    tuple.kind = std::uint32_t{ip_protocol::kTcp} << classify::kKindDetailBits;
    if (i % 4 != 0 && !rules.entries.empty()) {
      const classify::Entry& entry = rules.entries[random() % rules.entries.size()];
      for (std::uint32_t c = 0; c < entry.condition_count; ++c) {
        satisfy(rules.conditions[entry.first_condition + c], rules, random, tuple);
      }
    }
    const bool is_tcp = tuple.kind >> classify::kKindDetailBits == ip_protocol::kTcp;
    if (is_tcp) tuple.kind |= kAck;
  }
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
  explicit Firewall(Ruleset rules)
      : rules_(std::move(rules)),
        tuples_(draw_keys(rules_)),
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

Result<std::unique_ptr<LookupWork>> make_firewall(Ruleset rules) {
  return std::make_unique<Firewall>(std::move(rules));
}

}  // namespace penstock::experiments
