// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tests a program that adds its own network functions: every command must know them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/testing/file_content.h"
#include "cli/program_main.h"

namespace penstock::cli {
namespace {

using ::testing::HasSubstr;

/// Forwards every packet.
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

/// Writes a line for each packet to the log `numbers`, if the chain file names it.
class Numbering final : public function::NetworkFunction {
 public:
  explicit Numbering(report::EventLog* log) : log_(log) {}
  const function::NfTraits& traits() const noexcept override { return traits_; }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return std::make_unique<Stage>(log_); }
  std::string description() const override { return "numbers packets"; }

 private:
  struct Stage final : function::CpuStage {
    explicit Stage(report::EventLog* log) {
      if (log != nullptr) writer.emplace(*log);
    }
    void process(std::span<PacketView> packets) noexcept override {
      for (const PacketView packet : packets) {
        if (writer) writer->line([&](std::string& line) { line += std::to_string(packet.packet->sequence); });
      }
    }
    std::optional<report::EventLog::Writer> writer;
  };
  function::NfTraits traits_{.name = "numbering", .summary = "numbers packets"};
  report::EventLog* const log_;
};

std::string secrets_of(std::span<const function::NetworkFunction* const> functions) {
  std::string text;
  for (const function::NetworkFunction* function : functions) text += function->description() + "\n";
  return text;
}

constexpr auto kNumberingOutputs = std::to_array<function::OutputKind>({
    {"numbers", "numbers", "the number of each packet"},
    {"secrets", "secrets", "what others must not read", &secrets_of, "secrets"},
});
constexpr function::NfKind kNumbering{
    "numbering",
    "numbers packets",
    {},
    [](const Parameters&, function::NfContext& context) -> Result<std::unique_ptr<function::NetworkFunction>> {
      return std::make_unique<Numbering>(context.log("numbers"));
    },
    kNumberingOutputs};

class FurtherFunctions : public ::testing::Test {
 protected:
  void SetUp() override {
    chain_ = ::testing::TempDir() + "/further_functions_test_" + std::to_string(::getpid()) + ".yaml";
    write("pass");
  }
  void TearDown() override { std::remove(chain_.c_str()); }
  void write(const std::string& functions, const std::string& outputs = "") const {
    std::ofstream(chain_) << "ports:\n  load: {generator: {packets: 10}}\n  wan: {null: {}}\nchain: [" << functions
                          << "]\n"
                          << outputs;
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

TEST_F(FurtherFunctions, WriteTheOutputsThatTheyDeclare) {
  const std::string numbers = chain_ + ".numbers";
  const std::string secrets = chain_ + ".secrets";
  write("numbering, numbering", "outputs: {numbers: " + numbers + ", secrets: " + secrets + "}\n");
  const mode_t mask = ::umask(0);
  const int code = run({"run", chain_.c_str(), "-q"}, {&kNumbering});
  ::umask(mask);
  ASSERT_EQ(code, 0) << err_;
  EXPECT_EQ(testing::content_of(numbers), "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  EXPECT_EQ(testing::content_of(secrets), "numbers packets\nnumbers packets\n");
  struct stat status {};
  ASSERT_EQ(::stat(secrets.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U) << "only the owner can read it";
  ASSERT_EQ(::stat(numbers.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0666U);
  std::remove(numbers.c_str());
  std::remove(secrets.c_str());
}

TEST_F(FurtherFunctions, NeverWriteSecretsToStandardOutput) {
  write("numbering", "outputs: {secrets: '-'}\n");
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kNumbering}), 2);
  EXPECT_THAT(err_, HasSubstr(".yaml:5:20: secrets: secrets cannot be written to standard output: found -"));
  EXPECT_EQ(out_, "");
}

TEST_F(FurtherFunctions, AreReportedAsMissingIfAnOutputNeedsThem) {
  write("pass", "outputs: {numbers: numbers.log}\n");
  EXPECT_EQ(run({"check", chain_.c_str()}, {&kPass, &kNumbering}), 0) << err_;
  EXPECT_THAT(err_, HasSubstr("numbers: no function of the chain writes it: found '"));
  EXPECT_THAT(err_, HasSubstr("expected a function that writes numbers, such as numbering"));
  write("pass", "outputs: {secrets: secrets.txt}\n");
  EXPECT_EQ(run({"check", chain_.c_str()}, {&kPass, &kNumbering}), 2);
  EXPECT_THAT(err_, HasSubstr("secrets: the chain has no numbering function: expected one with secrets"));
  EXPECT_EQ(run({"check", chain_.c_str()}, {&kPass}), 2);
  EXPECT_THAT(err_, HasSubstr("unknown parameter: found 'secrets'"));
}

TEST_F(FurtherFunctions, AreRefusedIfAnOutputsNameIsTaken) {
  static constexpr function::OutputKind kReport{"report", "lines", "no report"};
  static constexpr function::OutputKind kEve{"eve", "alerts", "more alerts"};
  static constexpr function::OutputKind kEveText{"eve", "alerts", "a text", &secrets_of};
  const auto with = [](const function::OutputKind& output) {
    function::NfKind kind = kPass;
    kind.outputs = {&output, 1};
    return kind;
  };
  for (const function::OutputKind* output : {&kReport, &kEveText}) {
    const function::NfKind kind = with(*output);
    EXPECT_EQ(run({"check", chain_.c_str()}, {&kind}), 2);
    EXPECT_THAT(err_, HasSubstr("network function pass declares an output whose name is taken: found '"));
  }
  const function::NfKind kind = with(kEve);
  EXPECT_EQ(run({"check", chain_.c_str()}, {&kind}), 0) << "several kinds of function may write to one log" << err_;
}

TEST_F(FurtherFunctions, AreListedIfAFunctionIsUnknown) {
  write("pas");
  EXPECT_EQ(run({"check", chain_.c_str()}), 2);
  EXPECT_THAT(err_, HasSubstr("expected pass"));
  EXPECT_EQ(run({"check", chain_.c_str()}, {}), 2);
  EXPECT_THAT(err_, HasSubstr("expected one of filter, firewall, ipsec, kernel, nids, router"));
}

TEST_F(FurtherFunctions, AreRefusedIfTheirNameIsTaken) {
  static constexpr function::NfKind kRouter = named("router");
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kPass, &kRouter}), 2);
  EXPECT_EQ(out_, "");
  EXPECT_THAT(err_, HasSubstr("the name of a built-in one: found 'router'"));
  static constexpr function::NfKind kPassAgain = named("pass");
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kPass, &kPassAgain}), 2);
  EXPECT_THAT(err_, HasSubstr("two network functions have one name: found 'pass'"));
}

TEST_F(FurtherFunctions, AreRefusedIfAParameterHasTheNameOfOneThatAllFunctionsHave) {
  static constexpr auto kProcessor = std::to_array<Parameter>(
      {{"least", ParameterType::integer, "1", "1..9", ""}, {"processor", ParameterType::text, "", "", ""}});
  function::NfKind kind = kPass;
  kind.parameters = kProcessor;
  EXPECT_EQ(run({"run", chain_.c_str()}, {&kind}), 2);
  EXPECT_THAT(err_, HasSubstr("the network function pass has a parameter of a name that all functions use: found "
                              "'processor', expected another name"));
}

TEST_F(FurtherFunctions, AreRefusedIfAChainFileCouldNotNameThem) {
  for (const char* name : {"", "7", "min.ttl", "pass#2", "MinTtl", "min ttl"}) {
    const function::NfKind kind = named(name);
    EXPECT_EQ(run({"run", chain_.c_str()}, {&kind}), 2) << name;
    EXPECT_THAT(err_, HasSubstr("wrong name of a network function")) << name;
  }
}

}  // namespace
}  // namespace penstock::cli
