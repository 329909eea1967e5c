// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: a fake whose finish stage may get findings from another process.

#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "function/confirming_stage.h"
#include "function/network_function.h"
#include "run/testing/fakes.h"

namespace penstock::process::testing {

class ConfirmingFake final : public function::NetworkFunction, public function::ConfirmingFunction {
 public:
  using MakeFinish = std::function<std::unique_ptr<function::FinishStage>()>;
  /// `fake` does the rest.
  ConfirmingFake(std::unique_ptr<run::testing::FakeFunction> fake, const function::ClearFindings& clear,
                 MakeFinish make_finish)
      : fake_(std::move(fake)), clear_(clear), make_finish_(std::move(make_finish)) {}

  const function::NfTraits& traits() const noexcept override { return fake_->traits(); }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return fake_->make_cpu_stage(); }
  std::unique_ptr<function::FinishStage> make_finish_stage(function::CpuStage& /*twin*/) override {
    return make_finish_();
  }
  std::optional<function::StageRecipe> stage_recipe(function::Processor processor) const override {
    return fake_->stage_recipe(processor);
  }
  std::optional<function::ClearFindings> clear_findings() const noexcept override { return clear_; }
  std::string description() const override { return fake_->description(); }

 private:
  const std::unique_ptr<run::testing::FakeFunction> fake_;
  const function::ClearFindings clear_;
  const MakeFinish make_finish_;
};

}  // namespace penstock::process::testing
