// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function's CPU stage attached to a stack, as in a worker. Ends the stack's flows before it destroys the stage.

#pragma once

#include <memory>
#include <span>

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
  }
  AttachedStage(AttachedStage&&) = default;
  AttachedStage& operator=(AttachedStage&&) = delete;
  ~AttachedStage() { reset(); }

  void process(std::span<PacketView> packets) {
    stage_->process(packets);
    stack_->settle(0);
  }
  [[nodiscard]] CpuStage* operator->() const noexcept { return stage_.get(); }
  [[nodiscard]] CpuStage& operator*() const noexcept { return *stage_; }

  void reset() {
    if (stage_ != nullptr) stack_->finish();
    stage_.reset();
  }

 private:
  std::unique_ptr<stack::SharedStack> stack_;
  std::unique_ptr<CpuStage> stage_;
};

}  // namespace penstock::function::testing
