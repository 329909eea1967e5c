// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function's CPU stage with the stack and the connections that a worker gives it. Ends the stack's flows before it
// destroys the stage.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "conntrack/connections.h"
#include "function/burst.h"
#include "function/connection_keeper.h"
#include "function/network_function.h"
#include "function/stack_use.h"
#include "stack/shared_stack.h"

namespace penstock::function::testing {

class AttachedStage {
 public:
  explicit AttachedStage(NetworkFunction& function, unsigned worker = 0) : stage_(function.make_cpu_stage()) {
    const stack::StackUse use = stack_use(function);
    stack_ = std::make_unique<stack::SharedStack>(FieldSet{}, std::span(&use, 1), worker);
    if (stack::Attachment* attachment = stack_->attachment(0)) stage_->attach(*attachment);
    connections_ = make_connections(function, kMostPackets);
    if (connections_ != nullptr) stage_->set_connections(*connections_);
  }
  AttachedStage(AttachedStage&&) = default;
  AttachedStage& operator=(AttachedStage&&) = delete;
  ~AttachedStage() { reset(); }

  /// At most one burst. If the function asks about connections, gives them sequence numbers.
  void process(std::span<PacketView> packets) {
    if (connections_ != nullptr) connections_->pass_boundary();
    for (const PacketView& packet : packets) {
      if (connections_ != nullptr) packet.packet->sequence = sequence_++;
    }
    stage_->process(packets);
    stack_->settle(0);
    if (connections_ != nullptr) connections_->settle();
  }
  [[nodiscard]] CpuStage* operator->() const noexcept { return stage_.get(); }
  [[nodiscard]] CpuStage& operator*() const noexcept { return *stage_; }

  void reset() {
    if (stage_ != nullptr) stack_->finish();
    stage_.reset();
  }

 private:
  static constexpr std::size_t kMostPackets = kBurst;

  std::unique_ptr<stack::SharedStack> stack_;
  std::unique_ptr<conntrack::Connections> connections_;
  std::uint32_t sequence_ = 0;
  std::unique_ptr<CpuStage> stage_;
};

}  // namespace penstock::function::testing
