// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes functions from the configurations of access_configurations.h, in a folder of their own.

#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/catalog.h"
#include "port/testing/port_harness.h"
#include "property/access_configurations.h"
#include "property/access_runs.h"
#include "property/access_traffic.h"

namespace penstock::property {

class ConfiguredFunctions {
 public:
  ConfiguredFunctions() {
    for (const auto& [name, text] : configuration_files()) std::ofstream(folder_ / name) << text;
  }

  [[nodiscard]] MadeFunction make(const Configuration& configuration) const {
    const bool numbers = std::string_view(configuration.kind) == "ipsec";  // the same in every run
    const function::NfKind* kind = numbers ? &ipsec::testing::fixed_iv_kind() : nf::find_kind(configuration.kind);
    std::vector<RawParameter> raw;
    for (auto [name, items] : configuration.parameters) {
      for (std::string& item : items) {
        if (item[0] == '@') item = folder_ / item.substr(1);
      }
      // A libpcap expression may contain '=' too.
      const bool pairs = items.front().find('=') != std::string::npos && name != "expression";
      raw.push_back({name, {}, {}, items, pairs ? RawParameter::Shape::mapping : RawParameter::Shape::scalar, ""});
    }
    MadeFunction made;
    made.log = std::make_unique<report::EventLog>(folder_ / ("log-" + std::to_string(logs_++)));
    const auto opened = made.log->open();
    EXPECT_TRUE(opened) << to_string(opened.error());
    made.log->begin();
    static const std::vector<std::string> kPorts{"lan", "wan", "dmz"};
    function::NfContext context{kPorts, configuration.out_port_known, {}};
    const function::NamedLog eve{"eve", made.log.get()};
    context.logs = {&eve, 1};
    auto parameters = Parameters::read(kind->parameters, std::move(raw), {});
    EXPECT_TRUE(parameters) << to_string(parameters.error());
    auto function = kind->make(*parameters, context);
    EXPECT_TRUE(function) << to_string(function.error());
    EXPECT_TRUE(context.unsupported.empty()) << to_string(context.unsupported);
    made.function = std::move(*function);
    EXPECT_TRUE(made.function->begin_run());
    return made;
  }

 private:
  port::testing::TemporaryFolder folder_;
  mutable unsigned logs_ = 0;
};

}  // namespace penstock::property
