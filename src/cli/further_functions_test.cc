// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A program that brings network functions of its own: every command knows them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program_main.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

/// Lets every packet pass.
class Pass final : public function::NetworkFunction {
 public:
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(); }
  std::string description() const override { return "lets all pass"; }

 private:
  struct Stage final : function::CpuStage {
    void process(std::span<PacketView>) noexcept override {}
  };
  function::NfTraits traits_{.name = "pass", .summary = "lets all pass"};
};

constexpr auto kParameters = std::to_array<Parameter>({{"least", ParameterType::integer, "1", "1..9", "of no use"}});

Result<std::unique_ptr<function::NetworkFunction>> make(const Parameters&, function::NfContext&) {
  return std::make_unique<Pass>();
}

constexpr function::NfKind named(std::string_view name) { return {name, "lets all pass", kParameters, &make}; }
constexpr function::NfKind kPass = named("pass");

class FurtherFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    chain_ = ::testing::TempDir() + "/further_functions_test_" + std::to_string(::getpid()) + ".yaml";
    write("pass");
  }
  void TearDown() override { std::remove(chain_.c_str()); }
  void write(const std::string& function) const {
    std::ofstream(chain_) << "ports:\n  load: {generator: {packets: 10}}\n  wan: {null: {}}\nchain: [" << function
                          << "]\n";
  }

  int run(std::vector<const char*> arguments, const std::vector<const function::NfKind*>& further = {&kPass}) {
    arguments.insert(arguments.begin(), "penstock");
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exit_code = program_main(static_cast<int>(arguments.size()), arguments.data(), further);
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return exit_code;
  }

  std::string chain_, out_, err_;
};

TEST_F(FurtherFunctions, RunInAChain) {
  ASSERT_EQ(run({"run", chain_.c_str()}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\npass")) << "the report's line";
}

TEST_F(FurtherFunctions, AreCheckedAndPlanned) {
  ASSERT_EQ(run({"check", chain_.c_str()}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("pass: lets all pass"));
  ASSERT_EQ(run({"plan", chain_.c_str()}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("pass"));
  write("pass: {least: 10}");
  EXPECT_EQ(run({"check", chain_.c_str()}), 2);
  EXPECT_THAT(err_, HasSubstr("1..9"));
}

TEST_F(FurtherFunctions, AreListedWithTheirParameters) {
  ASSERT_EQ(run({"check", "--parameters"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\nrouter: "));
  EXPECT_THAT(out_, HasSubstr("\npass: lets all pass"));
  ASSERT_EQ(run({"check", "--parameters", "--json"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\"name\": \"pass\""));
}

TEST_F(FurtherFunctions, AreNamedWhereAnotherIsUnknown) {
  write("pas");
  EXPECT_EQ(run({"check", chain_.c_str()}), 2);
  EXPECT_THAT(err_, HasSubstr("expected pass"));
  EXPECT_EQ(run({"check", chain_.c_str()}, {}), 2);
  EXPECT_THAT(err_, HasSubstr("expected one of firewall, ipsec, nids, router"));
}

TEST_F(FurtherFunctions, AreRefusedWhereTheirNameIsTaken) {
  static constexpr function::NfKind kRouter = named("router");
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kPass, &kRouter}), 2);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("the name of a built-in one: found 'router'"));
  static constexpr function::NfKind kPassAgain = named("pass");
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kPass, &kPassAgain}), 2);
  EXPECT_THAT(err_, HasSubstr("two network functions have one name: found 'pass'"));
}

TEST_F(FurtherFunctions, AreRefusedWhereAChainFileCouldNotNameThem) {
  for (const char* name : {"", "7", "min.ttl", "pass#2", "MinTtl", "min ttl"}) {
    const function::NfKind kind = named(name);
    EXPECT_EQ(run({"run", chain_.c_str()}, {&kind}), 2) << name;
    EXPECT_THAT(err_, HasSubstr("wrong name of a network function")) << name;
  }
}

}  // namespace
}  // namespace penstock::cli
