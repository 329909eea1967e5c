// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The program on live interfaces between two hosts, in network namespaces that end with each test. The scenarios are in
// live/.

#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace penstock {

/// The kind of the ports, and the scenario.
class LiveScenario : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override;
  void TearDown() override;
  /// Skips where namespaces, virtual links or the tools are not available. `processor`: cpu or gpu.
  void run(const char* processor) const;

 private:
  std::string directory_;
};

/// KIND_SCENARIO
[[nodiscard]] std::string name_of_scenario(const ::testing::TestParamInfo<LiveScenario::ParamType>& test);

}  // namespace penstock
