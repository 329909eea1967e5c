// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of the function: it is made from parameters as in a chain file, and gets batches of frames.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nf/nids/detect/testing/detection_bed.h"
#include "nf/nids/nids.h"
#include "packet/batch.h"
#include "packet/parse_core.h"
#include "packet/testing/packet_builder.h"

namespace penstock::nids::testing {

using penstock::testing::packet;
using Json = nlohmann::json;

inline constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;

inline Frame question(std::string_view text, std::uint16_t port = 4000) {
  return packet().eth().ipv4("10.0.0.1", "192.0.2.1").udp(port, 53).payload(text).bytes();
}

/// Frames in one batch, a millisecond apart, numbered from 1.
class Frames {
 public:
  explicit Frames(const std::vector<Frame>& frames) : bytes_(1 << 20), descriptors_(frames.size()) {
    Batch batch(bytes_, descriptors_, {});
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const auto length = static_cast<std::uint32_t>(frames[i].size());
      EXPECT_TRUE(batch.append(
          frames[i], {kStart + i * 1'000'000, length, 0, LinkType::ethernet, static_cast<std::uint32_t>(i + 1)}));
      views.push_back(batch.view(i));
      parse(views.back());
    }
  }
  std::vector<PacketView> views;

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<PacketDescriptor> descriptors_;
};

class NidsFunction : public ::testing::Test {
 protected:
  ~NidsFunction() override {
    std::remove(rules_.c_str());
    std::remove(eve_path_.c_str());
  }
  using Given = std::pair<std::string, std::vector<std::string>>;

  Result<std::unique_ptr<function::NetworkFunction>> try_make(const std::string& rules,
                                                              const std::vector<Given>& given = {},
                                                              report::EventLog* eve = nullptr) {
    std::ofstream(rules_) << rules;
    std::vector<RawParameter> raw{{"rules", {}, {"chain.yaml", 1, 1}, {rules_}, RawParameter::Shape::scalar, ""}};
    for (const auto& [name, items] : given) {
      const auto shape = name == "vars" ? RawParameter::Shape::mapping : RawParameter::Shape::scalar;
      raw.push_back({name, {}, {"chain.yaml", 2, 1}, items, shape, ""});
    }
    auto parameters = Parameters::read(nids_kind().parameters, raw, {});
    if (!parameters) return tl::unexpected(std::move(parameters.error()));
    function::NfContext context;
    const function::NamedLog log{"eve", eve};
    context.logs = {&log, 1};
    auto made = nids_kind().make(*parameters, context);
    unsupported_ = std::move(context.unsupported);
    return made;
  }
  std::unique_ptr<function::NetworkFunction> make(const std::string& rules, const std::vector<Given>& given = {},
                                                  report::EventLog* eve = nullptr) {
    auto made = try_make(rules, given, eve);
    EXPECT_TRUE(made) << to_string(made.error());
    return std::move(*made);
  }
  std::string refusal(const std::string& rules, const std::vector<Given>& given = {}) {
    const auto made = try_make(rules, given);
    return made ? "made" : to_string(made.error());
  }
  [[nodiscard]] static Json report_of(const function::NetworkFunction& function) {
    Json report = Json::object();
    function.report(report);
    return report;
  }
  [[nodiscard]] std::vector<Json> records() const {
    std::vector<Json> all;
    std::ifstream lines(eve_path_);
    for (std::string line; std::getline(lines, line);) all.push_back(Json::parse(line));
    return all;
  }

  const std::string rules_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_nids.rules";
  const std::string eve_path_ = ::testing::TempDir() + "/" + std::to_string(::getpid()) + "_nids_eve.json";
  Errors unsupported_;
};

}  // namespace penstock::nids::testing
