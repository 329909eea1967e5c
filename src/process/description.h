// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// What the processes of a chain and of a function tell each other before the first packet, as messages and as values.
// What has come from the other process is checked here. Pure.

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "function/confirming_stage.h"
#include "function/network_function.h"
#include "process/protocol.h"

namespace penstock::process {

/// What a function may know about its chain.
struct Surroundings {
  struct Port {
    std::string name;
    bool reads = false, writes = false, is_live = false, answers = false;
    PortIndex exit = kNoPort;
  };
  std::vector<Port> ports;  // by PortIndex
  bool knows_exits = false;
  bool out_port_known = false;  // an earlier function sets the port by which packets leave
};

/// Fails if the chain has more ports than a message has room for.
[[nodiscard]] Result<Hello> hello_of(std::string_view function, const Surroundings& surroundings);
[[nodiscard]] Result<Surroundings> surroundings_of(const Hello& hello);

/// Whether it may change the length of frames.
[[nodiscard]] bool changes_lengths(const function::NfTraits& traits) noexcept;
/// Why the function cannot be in a process of its own; "": it can.
[[nodiscard]] std::string why_not_served(const function::NetworkFunction& function);
/// Of a function that can. `stage`: of a stage in a proxy (why_no_stage); null: it has none. Fails if the function has
/// more drop reasons than a message has room for.
[[nodiscard]] Result<Description> description_of(const function::NetworkFunction& function,
                                                 const function::StageNeeds* stage = nullptr);
/// Why a stage with these needs cannot do the work of the function in a proxy; "": it can. `confirms`: the function's
/// process confirms what the stage finds.
[[nodiscard]] std::string why_no_stage(const function::NfTraits& traits, const function::StageNeeds& stage,
                                       bool confirms = false);
[[nodiscard]] Description refusal(const Error& error);
/// The same in the chain's process, as printable text.
[[nodiscard]] Error error_of(const Description& refusal);

/// Of a function in another process. Owns what the traits refer to. `kLost` follows the function's own drop reasons.
class ServedTraits {
 public:
  /// For packets that the process has not decided about.
  static constexpr std::string_view kLost = "process_lost";

  /// `function`: the kind that the chain file names.
  /// `in_proxy`: the chain's lanes are in one, where the function may have a stage. `passes_when_lost`: packets that
  /// the process has not decided about may pass; otherwise none leaves before it has confirmed what its stage has
  /// found.
  [[nodiscard]] static Result<std::unique_ptr<const ServedTraits>> read(const Description& description,
                                                                        std::string_view function,
                                                                        bool in_proxy = false,
                                                                        bool passes_when_lost = false);

  ServedTraits(const ServedTraits&) = delete;
  ServedTraits& operator=(const ServedTraits&) = delete;

  [[nodiscard]] const function::NfTraits& traits() const noexcept { return traits_; }
  /// The number of the function's own drop reasons.
  [[nodiscard]] std::size_t reasons() const noexcept { return texts_.size() - 1; }
  [[nodiscard]] bool tracks_flows() const noexcept { return tracks_flows_; }
  [[nodiscard]] bool changes_bytes() const noexcept { return changes_bytes_; }
  /// Of what its process confirms; empty: nothing.
  [[nodiscard]] const std::optional<function::ClearFindings>& clear_findings() const noexcept {
    return clear_findings_;
  }
  /// Null: it has no stage in a proxy.
  [[nodiscard]] const function::StageNeeds* stage() const noexcept { return stage_ ? &*stage_ : nullptr; }

 private:
  ServedTraits() = default;

  std::string name_;
  std::vector<std::string> texts_;
  std::vector<std::string_view> reasons_;
  function::NfTraits traits_;
  bool tracks_flows_ = false;
  bool changes_bytes_ = false;
  std::optional<function::ClearFindings> clear_findings_;
  std::optional<function::StageNeeds> stage_;
};

/// Whether a chain that is planned for the one can go on with the other. The stage on a device does not matter: a proxy
/// refuses another one, and the process does its work.
[[nodiscard]] bool are_alike(const Description& one, const Description& other) noexcept;
/// Whether their stages find as many bytes about a packet, and need as many.
[[nodiscard]] bool exchanges_the_same(const Description& one, const Description& other) noexcept;

}  // namespace penstock::process
