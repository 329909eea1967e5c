// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "run/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "conntrack/connections.h"
#include "function/connection_keeper.h"
#include "packet/field_text.h"
#include "packet/flow_hash.h"
#include "packet/parse_core.h"
#include "plan/fork.h"
#include "run/counters.h"

namespace penstock::run {

namespace {

class Walk {
 public:
  Walk(const Chain& chain, PacketView packet, Ports ports) : chain_(chain), packet_(packet), ports_(ports) {}

  ExplainedPacket operator()() && {
    parse(packet_);
    packet_.packet->flow_hash = flow_hash(packet_);
    packet_.packet->verdict = Verdict::forward();
    explained_.packet = format_packet(packet_);
    explained_.in_port = port_name(chain_, packet_.packet->in_port);
    std::size_t first = 0;
    for (const plan::Fork& fork : chain_.forks) {
      pass(first, fork.first);
      if (goes_on_) take(fork);
      first = fork.last;
    }
    pass(first, chain_.functions.size());
    if (goes_on_) leave();
    return std::move(explained_);
  }

 private:
  void pass(std::size_t first, std::size_t last) {
    for (std::size_t f = first; f < last && goes_on_; ++f) pass(chain_.functions[f]);
  }

  void pass(const NamedFunction& named) {
    const function::NfTraits& traits = named.function->traits();
    const std::vector<std::uint8_t> bytes(packet_.frame, packet_.frame + packet_.length());
    PacketDescriptor descriptor = *packet_.packet;
    ExplainedPacket::Step step{named.name, ""};
    step.explanation = explain(*named.function);
    step.changes = changes_between({const_cast<std::uint8_t*>(bytes.data()), &descriptor}, packet_);
    step.decision = decision_of(chain_, traits, packet_.packet->verdict);
    const auto ask = [&](std::string_view question) {
      explained_.open_questions.push_back(fmt::format("{}: {}", named.name, question));
    };
    if (!step.explanation) {
      ask("it explains nothing, and is taken to forward the packet unchanged");
    } else {
      if (!step.explanation->depends_on.empty()) ask("it also decides by " + step.explanation->depends_on);
      if (!step.explanation->ends.empty()) ask(step.explanation->ends);
      goes_on_ = step.explanation->ends.empty();
    }
    goes_on_ = goes_on_ && packet_.packet->verdict.alive();
    explained_.outcome = step.decision;
    explained_.steps.push_back(std::move(step));
  }

  /// Functions share what they know about connections, as those of a worker do.
  [[nodiscard]] std::optional<function::Explanation> explain(const function::NetworkFunction& function) {
    if (connections_ == nullptr) connections_ = function::connections_to_explain(function);
    const auto* const keeper = dynamic_cast<const function::ConnectionKeeper*>(&function);
    if (keeper == nullptr || !function.traits().connections) return function.explain(packet_);
    return keeper->explain(packet_, *connections_);
  }

  void take(const plan::Fork& fork) {
    const std::uint8_t taken = fork.arm_of(*packet_.packet);
    const plan::Arm* const arm = taken == plan::Fork::kNoArm ? nullptr : &fork.arms[taken];
    ExplainedPacket::Step step{"", arm == nullptr ? "" : arm->text};
    step.decision = decision_of(chain_, {}, packet_.packet->verdict);
    explained_.steps.push_back(std::move(step));
    if (arm != nullptr) pass(arm->first, arm->last);
  }

  /// As the outlet does.
  void leave() {
    const PortIndex chosen = packet_.packet->verdict.value;
    const PortIndex exit = chosen != kNoPort ? chosen : chain_.wiring[packet_.packet->in_port];
    if (exit != kNoPort && (exit >= chain_.ports.size() || !chain_.ports[exit].port->writes())) {
      explained_.outcome = {"drop", std::string(kChainDropNames[static_cast<std::size_t>(ChainDrop::no_such_exit)])};
    } else {
      explained_.outcome = exit == kNoPort ? Decision{"consume"} : Decision{"forward", "", port_name(chain_, exit)};
      if (exit != kNoPort && ports_ == Ports::open) explained_.refused = why_refused(chain_.ports[exit]);
      if (exit != kNoPort && ports_ == Ports::closed && chain_.ports[exit].port->interface())
        explained_.open_questions.push_back(
            fmt::format("port {} is not open: it may be down, or its MTU too small", chain_.ports[exit].name));
      if (!explained_.refused.empty())
        explained_.outcome = {"drop", std::string(kChainDropNames[static_cast<std::size_t>(ChainDrop::port_refused)])};
    }
  }

  [[nodiscard]] std::string why_refused(const NamedPort& exit) const {
    if (const auto link = exit.port->link(); link && *link != port::LinkState::up)
      return fmt::format("the interface of port {} is {}", exit.name,
                         *link == port::LinkState::down ? "down" : "absent");
    const std::size_t header = packet_.layout().network_offset;
    const std::size_t bytes = std::max<std::size_t>(packet_.length(), packet_.packet->wire_length);
    if (const auto mtu = exit.port->mtu(); mtu && bytes > header + *mtu) {
      return fmt::format("the packet has {} bytes, the MTU of port {} is {}", bytes - header, exit.name, *mtu);
    }
    return "";
  }

  const Chain& chain_;
  PacketView packet_;
  const Ports ports_;
  std::unique_ptr<conntrack::Connections> connections_;  // null: no function has asked about any
  ExplainedPacket explained_;
  bool goes_on_ = true;
};

}  // namespace

ExplainedPacket explain(const Chain& chain, PacketView packet, Ports ports) { return Walk(chain, packet, ports)(); }

}  // namespace penstock::run
