// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "config/reload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/testing/made_up_machine.h"

namespace penstock::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// A function that keeps its parameter and its log, and is asked what has changed.
class Probe final : public function::NetworkFunction {
 public:
  explicit Probe(std::string word, function::NfContext& context) : word_(std::move(word)), log_(context.log("probes")) {
    traits_.name = "probe";
    traits_.cpu.reads = {Field::ipv4_src};
    if (word_ == "more") traits_.cpu.reads |= {Field::payload};
    if (word_ == "flows") traits_.stack = stack::StackNeed::flow;
    if (word_.starts_with("stream")) traits_.stack = stack::StackNeed::tcp_stream;
  }
  const function::NfTraits& traits() const noexcept override { return traits_; }
  stack::TrackerOptions stack_options() const override {
    stack::TrackerOptions options;
    options.stream_depth = word_ == "stream-deep" ? 1 << 21 : 1 << 20;
    options.seam_bytes = word_ == "stream-far" ? 1000 : 100;
    return options;
  }
  std::unique_ptr<function::CpuStage> make_cpu_stage() override { return nullptr; }
  std::string description() const override { return word_; }
  Result<std::string> changes_from(const function::NetworkFunction& running) const override {
    const std::string& before = dynamic_cast<const Probe&>(running).word_;
    if (word_ == "never") return failure(Error{{}, "this word cannot change", word_, before});
    return word_ == before ? "" : before + " → " + word_;
  }
  report::EventLog* log() const { return log_; }

 private:
  const std::string word_;
  report::EventLog* const log_;
  function::NfTraits traits_;
};

std::string words_of(std::span<const function::NetworkFunction* const> functions) {
  std::string text;
  for (const function::NetworkFunction* function : functions) text += function->description() + "\n";
  return text;
}

Result<std::unique_ptr<function::NetworkFunction>> make_probe(const Parameters& parameters,
                                                              function::NfContext& context) {
  if (parameters.text("word") == "wrong")
    return failure(Error{parameters.place("word"), "a wrong word", "'wrong'", "another one"});
  if (parameters.text("word") == "odd")
    context.unsupported.push_back({parameters.place("word"), "an odd word", "", ""});
  return std::make_unique<Probe>(parameters.text("word"), context);
}

constexpr auto kParameters = std::to_array<Parameter>({
    {"word", ParameterType::text, "first", "", "a word", false},
    {"file", ParameterType::path, "", "", "a file", false},
});
constexpr auto kOutputs = std::to_array<function::OutputKind>({
    {"probes", "words", "words as they come"},
    {"words", "words", "all words", &words_of},
});
constexpr function::NfKind kProbe{"probe", "keeps a word", kParameters, &make_probe, kOutputs};

/// A running chain, and new versions of its file.
class PlannedReload : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "penstock_reload_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    put("rules", "@0.0.0.0/0\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n");
    put("routes", "default via 10.0.0.1 dev wan\n");
    kinds_.assign(nf::catalog().begin(), nf::catalog().end());
    kinds_.push_back(&kProbe);
    options_.functions = kinds_;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void put(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  static std::string with(std::string text, const std::string& part, const std::string& instead) {
    const std::size_t at = text.find(part);
    EXPECT_NE(at, std::string::npos) << part;
    return text.replace(at, part.size(), instead);
  }

  void start(const std::string& yaml = kChain) {
    put("chain.yaml", yaml);
    auto loaded = load_chain(folder_ + "/chain.yaml", options_);
    ASSERT_TRUE(loaded) << to_string(loaded.error());
    running_ = std::move(*loaded);
  }
  Result<Reload> plan(const std::string& yaml = kChain) {
    put("chain.yaml", yaml);
    return plan_reload(running_, folder_ + "/chain.yaml", options_);
  }
  /// "firewall: 1 rule added\n"
  std::string changes(const std::string& yaml = kChain) {
    const auto reload = plan(yaml);
    if (!reload) return to_string(reload.error());
    EXPECT_EQ(reload->functions.size(), running_.chain.functions.size());
    std::string text;
    for (const Reload::Change& change : reload->changes) text += change.function + ": " + change.what + "\n";
    return text;
  }
  /// The errors, without the folder.
  std::string errors(const std::string& yaml) {
    const auto reload = plan(yaml);
    EXPECT_FALSE(reload) << yaml;
    std::string text = reload ? "" : to_string(reload.error());
    for (std::size_t at = 0; (at = text.find(folder_ + "/", at)) != std::string::npos;)
      text.erase(at, folder_.size() + 1);
    return text;
  }
  std::string errors_with(const std::string& part, const std::string& instead) {
    return errors(with(kChain, part, instead));
  }

  static constexpr const char* kChain =
      "ports:\n"
      "  lan: {pcap: {read: in.pcap}}\n"
      "  wan: {pcap: {write: out.pcap}}\n"
      "chain:\n"
      "  - firewall: {rules: rules}\n"
      "  - router: {routes: routes}\n"
      "  - probe: {word: first}\n"
      "run: {workers: 2, batch: {timeout: 1ms}, processor: cpu}\n"
      "outputs: {probes: log, words: words.txt, report: report.json}\n";
  std::string folder_;
  std::vector<const function::NfKind*> kinds_;
  LoadOptions options_;
  LoadedChain running_;
};

TEST_F(PlannedReload, OfAnUnchangedFileChangesNothing) {
  start();
  EXPECT_EQ(changes(with(kChain, "word: first", "word: second")), "probe: first → second\n");
  EXPECT_EQ(changes(with(kChain, "{word: first}", "{}")), "") << "a default";
  const auto reload = plan();
  ASSERT_TRUE(reload) << to_string(reload.error());
  for (const Reload::Change& change : reload->changes) EXPECT_EQ(change.function + change.what, "");
  EXPECT_EQ(reload->functions.size(), 3U);
  EXPECT_THAT(reload->unsupported, IsEmpty());
}

TEST_F(PlannedReload, IgnoresLayoutCommentsOrderOfKeysAndUnits) {
  start();
  EXPECT_EQ(changes("# A comment\n"
                    "outputs:\n  report: report.json\n  words: 'words.txt'\n  probes: log\n"
                    "run:\n  processor: cpu\n  batch:\n    timeout: 1000us   # the same\n  workers: 2\n  streams: 3\n"
                    "chain: [firewall: {rules: rules}, router: {routes: [routes]}, probe: {}]\n"
                    "ports:\n  wan: {pcap: {write: out.pcap}}\n  lan:\n    pcap:\n      read: in.pcap\n"),
            "");
}

TEST_F(PlannedReload, KeepsTheNumbersOfPortsWhateverTheirOrderInTheFile) {
  start();
  const auto reload = plan(
      "ports:\n  wan: {pcap: {write: out.pcap}}\n  lan: {pcap: {read: in.pcap}}\n"
      "chain:\n  - firewall: {rules: rules}\n  - router: {routes: routes}\n  - probe: {word: first}\n"
      "run: {workers: 2, batch: {timeout: 1ms}, processor: cpu}\n"
      "outputs: {probes: log, words: words.txt, report: report.json}\n");
  ASSERT_TRUE(reload) << to_string(reload.error());
  const auto changes = reload->functions[1]->changes_from(*running_.chain.functions[1].function);
  ASSERT_TRUE(changes);
  EXPECT_THAT(reload->changes, IsEmpty()) << "the route leaves by the same port";
}

TEST_F(PlannedReload, DoesNotMoveWorkers) {
  const MadeUpMachine machine;
  machine.two_nodes();
  options_.machine = machine.root();
  const std::string with_cores = with(kChain, "workers: 2", "workers: 2, cores: 2-3");
  start(with_cores);
  EXPECT_EQ(changes(with(with_cores, "2-3", "[2, 3]")), "") << "the same";
  EXPECT_EQ(errors(with(with_cores, "2-3", "'3,2'")),
            "chain.yaml:8:26: run.cores cannot change in a reload: it needs a new run: found '3,2', expected '2-3'");
  EXPECT_EQ(errors(kChain),
            "chain.yaml:8:6: run.cores cannot change in a reload: it needs a new run: found nothing, expected '2-3'");
  // The cores are not checked again: workers keep them, even if the machine has fewer meanwhile.
  machine.cpus("0-15", "0-1", "");
  EXPECT_EQ(changes(with_cores), "");
}

TEST_F(PlannedReload, RefusesToChangePortsWiresRunAndOutputs) {
  start();
  EXPECT_EQ(errors_with("workers: 2", "workers: 4"),
            "chain.yaml:8:16: run.workers cannot change in a reload: it needs a new run: found '4', expected '2'");
  EXPECT_EQ(errors_with("timeout: 1ms", "timeout: 2ms"),
            "chain.yaml:8:36: run.batch.timeout cannot change in a reload: it needs a new run: found '2ms', expected "
            "'1ms'");
  EXPECT_EQ(errors_with("workers: 2", "workers: 2, latency: 1ms"),
            "chain.yaml:8:28: run.latency cannot change in a reload: it needs a new run: found '1ms', expected "
            "nothing");
  EXPECT_THAT(errors_with("report: report.json", "report: other.json"),
              HasSubstr("chain.yaml:9:50: outputs.report cannot change in a reload: it needs a new run: found '"));
  EXPECT_THAT(errors_with(", words: words.txt", ""),
              HasSubstr("chain.yaml:9:10: outputs.words cannot change in a reload: it needs a new run: found nothing"));
  EXPECT_THAT(errors_with("read: in.pcap", "read: other.pcap"),
              HasSubstr("chain.yaml:2:22: ports.lan.pcap.read cannot change in a reload: it needs a new run: found '"));
  EXPECT_EQ(errors_with("lan: {pcap: {read: in.pcap}}", "lan: {generator: {}}"),
            "chain.yaml:2:3: ports.lan cannot change in a reload: it needs a new run: found a port of kind generator, "
            "expected a port of kind pcap");
  EXPECT_EQ(errors_with("chain:", "  dmz: {pcap: {write: dmz.pcap}}\nchain:"),
            "chain.yaml:4:3: ports.dmz cannot change in a reload: it needs a new run: found a port of kind pcap, "
            "expected nothing");
  EXPECT_EQ(errors_with("  wan: {pcap: {write: out.pcap}}\n", ""),
            "chain.yaml:2:3: ports.wan cannot change in a reload: it needs a new run: found nothing, expected a port "
            "of kind pcap\n"
            "routes:1:26: unknown device: found 'wan', expected lan, or an entry in `interfaces` (a port or none)");
  EXPECT_EQ(errors_with("run:", "wire: {lan: wan}\nrun:"),
            "chain.yaml:8:13: wire.lan cannot change in a reload: it needs a new run: found 'wan', expected "
            "nothing");
}

TEST_F(PlannedReload, RefusesToChangeFunctionsAndTheirOrder) {
  start();
  const std::string cannot =
      "the functions of the chain, their order, processors and forks cannot change in a reload: it needs a new run: ";
  EXPECT_EQ(errors_with("  - router: {routes: routes}\n  - probe: {word: first}\n",
                        "  - probe: {word: first}\n  - router: {routes: routes}\n"),
            "chain.yaml:6:5: " + cannot + "found probe, expected router");
  EXPECT_EQ(errors_with("  - probe: {word: first}\n", "  - probe: {word: first}\n  - probe\n"),
            "chain.yaml:8:5: " + cannot + "found probe, expected the end of the chain");
  EXPECT_THAT(errors_with("  - probe: {word: first}\n", ""),
              HasSubstr("chain.yaml:6:5: " + cannot + "found the end of the chain, expected probe"));
  EXPECT_EQ(errors_with("  - probe: {word: first}\n", "  - fork: [{chain: [probe: {word: first}]}]\n"),
            "chain.yaml:7:5: " + cannot + "found a fork, expected probe");
}

TEST_F(PlannedReload, RefusesToMoveAFunctionToAnotherProcessor) {
  const std::string on_cpu = with(kChain, "{routes: routes}", "{routes: routes, processor: cpu}");
  const std::string cannot =
      "the functions of the chain, their order, processors and forks cannot change in a reload: it needs a new run: ";
  start();
  EXPECT_EQ(changes(with(kChain, "{routes: routes}", "{routes: routes, processor: auto}")), "") << "a default";
  EXPECT_EQ(errors(on_cpu),
            "chain.yaml:6:41: " + cannot + "found router with processor: cpu, expected router with processor: auto");
  start(on_cpu);
  EXPECT_EQ(changes(on_cpu), "");
  EXPECT_EQ(errors(kChain),
            "chain.yaml:6:5: " + cannot + "found router with processor: auto, expected router with processor: cpu");
  EXPECT_THAT(errors(with(on_cpu, "processor: cpu}\n  - probe", "processor: up}\n  - probe")), Not(HasSubstr(cannot)))
      << "a mistake hides it";
}

TEST_F(PlannedReload, RefusesToChangeForksAndTheirConditions) {
  const std::string forked = with(kChain, "  - probe: {word: first}\n",
                                  "  - fork:\n"
                                  "      - {when: {out_port: [wan]}, chain: [probe: {word: first}]}\n"
                                  "      - {chain: []}\n");
  start(forked);
  EXPECT_EQ(changes(forked), "");
  EXPECT_EQ(changes(with(forked, "out_port: [wan]", "out_port: wan")), "");
  EXPECT_EQ(changes(with(forked, "word: first", "word: second")), "probe: first → second\n");
  EXPECT_THAT(
      errors(with(forked, "out_port: [wan]", "in_port: lan")),
      HasSubstr("chain.yaml:8:9: the functions of the chain, their order, processors and forks cannot change in a "
                "reload: it needs a new run: found an arm for in_port lan, expected an arm for out_port wan"));
  EXPECT_THAT(errors(with(forked, "      - {chain: []}\n", "")),
              HasSubstr("expected an arm for all remaining packets"));
  EXPECT_THAT(errors(with(forked, "chain: []", "chain: [probe]")),
              HasSubstr("found probe, expected the end of the fork"));
}

TEST_F(PlannedReload, ReportsAllMistakesAtOnceAndChangesNothing) {
  start();
  const function::NetworkFunction* const firewall = running_.chain.functions[0].function.get();
  put("rules", "@nonsense\n@worse\n");
  put("routes", "default via 10.0.0.1 dev mars\n");
  const std::string text = errors(with(with(kChain, "workers: 2", "workers: 3"), "word: first", "word: wrong"));
  EXPECT_THAT(text, HasSubstr("chain.yaml:8:16: run.workers cannot change"));
  EXPECT_THAT(text, HasSubstr("chain.yaml:7:19: a wrong word"));
  EXPECT_THAT(text, HasSubstr("rules:1:1: not a ClassBench rule"));
  EXPECT_THAT(text, HasSubstr("rules:2:1: not a ClassBench rule"));
  EXPECT_THAT(text, HasSubstr("routes:1:26: unknown device"));
  EXPECT_EQ(running_.chain.functions[0].function.get(), firewall);
  EXPECT_THAT(firewall->description(), HasSubstr("1 rule,"));
}

TEST_F(PlannedReload, ReportsAFileThatIsNoChainFile) {
  start();
  EXPECT_THAT(errors("ports: [\n"), HasSubstr("not YAML"));
  EXPECT_THAT(errors("nonsense\n"), HasSubstr("not a chain file"));
  EXPECT_THAT(errors(with(kChain, "  - probe: {word: first}", "  - prob: {word: first}")),
              HasSubstr("unknown network function: found 'prob', expected probe"));
  EXPECT_EQ(errors(with(kChain, "  - probe: {word: first}", "  - probe: {wort: first}")),
            "chain.yaml:7:13: unknown parameter: found 'wort', expected word");
  EXPECT_THAT(errors("chain: []\n"), HasSubstr("`ports` is missing"));
  std::filesystem::remove(folder_ + "/chain.yaml");
  const auto reload = plan_reload(running_, folder_ + "/chain.yaml", options_);
  ASSERT_FALSE(reload);
  EXPECT_THAT(to_string(reload.error()), HasSubstr("No such file"));
}

TEST_F(PlannedReload, RefusesFilesThatCannotBeReadAgainWithoutOpeningThem) {
  start();
  ASSERT_EQ(::mkfifo((folder_ + "/pipe").c_str(), 0600), 0);  // opening it would block
  std::filesystem::create_symlink("pipe", folder_ + "/to_pipe");
  std::filesystem::create_symlink("/dev/stdin", folder_ + "/to_stdin");
  for (const std::string file : {"pipe", "to_pipe"}) {
    EXPECT_EQ(errors_with("rules: rules", "rules: " + file),
              "chain.yaml:5:23: a pipe cannot be read again: found '" + file + "', expected a regular file")
        << file;
  }
  for (const std::string file : {"'-'", "to_stdin", "/dev/stdin", "/dev/../dev/stdin", "/dev/fd/63", "/proc/self/fd/0"})
    EXPECT_THAT(errors_with("routes: routes", "routes: " + file),
                HasSubstr("chain.yaml:6:22: the standard input or a descriptor cannot be read again: found '"))
        << file;
  EXPECT_THAT(errors_with("word: first", "file: /dev/null"), HasSubstr("a device cannot be read again"));
  EXPECT_THAT(errors_with("routes: routes", "routes: [routes, pipe]"), HasSubstr("chain.yaml:6:31: a pipe cannot"));
  const auto again = plan_reload(running_, folder_ + "/pipe", options_);
  ASSERT_FALSE(again);
  EXPECT_THAT(to_string(again.error()), HasSubstr("/pipe: a pipe cannot be read again"));
}

TEST_F(PlannedReload, ReportsAMissingFile) {
  start();
  std::filesystem::remove(folder_ + "/rules");
  EXPECT_EQ(errors(kChain), "chain.yaml:5:23: rules: cannot open: No such file or directory");
}

TEST_F(PlannedReload, ReadsAFileThatWasReplaced) {
  start();
  put("rules.new", "@1.0.0.0/8\t0.0.0.0/0\t0 : 65535\t0 : 65535\t0x00/0x00\t0x0000/0x0000\n");
  std::filesystem::rename(folder_ + "/rules.new", folder_ + "/rules");
  EXPECT_THAT(changes(), HasSubstr("firewall: "));
}

TEST_F(PlannedReload, KeepsTheOverridesOfTheCommandLine) {
  options_.overrides = {override_by_option("--workers", "run.workers", "3"), *parse_override("chain.probe.word=given")};
  start();
  EXPECT_EQ(changes(with(kChain, "word: first", "word: second")), "") << "the override wins again";
  EXPECT_EQ(changes(with(kChain, "workers: 2", "workers: 7")), "");
  options_.overrides.clear();
  EXPECT_EQ(errors(kChain),
            "chain.yaml:8:16: run.workers cannot change in a reload: it needs a new run: found '2', expected '3'");
}

TEST_F(PlannedReload, RepeatsTheWarningsAboutWhatItLeavesAsItIs) {
  put("rules", "*filter\n:FORWARD ACCEPT [0:0]\nCOMMIT\n");
  const std::string chain = with(with(kChain, "processor: cpu", "processor: cpu, transfer: zero_copy"), "outputs: {",
                                 "outputs: {metrics: {listen: \"0.0.0.0:9\"}, ");
  start(chain);
  EXPECT_THAT(to_string(running_.cautions), AllOf(HasSubstr("all packets pass"), HasSubstr("whoever reaches this")));
  put("rules", "*filter\n:FORWARD DROP [0:0]\nCOMMIT\n");
  const auto reload = plan(chain);
  ASSERT_TRUE(reload) << to_string(reload.error());
  EXPECT_EQ(to_string(reload->without_effect), to_string(running_.without_effect));
  EXPECT_THAT(to_string(reload->without_effect), HasSubstr("transfer has no effect on the CPU"));
  EXPECT_THAT(to_string(reload->cautions),
              AllOf(Not(HasSubstr("all packets pass")), HasSubstr("whoever reaches this")));
}

TEST_F(PlannedReload, SharesTheLogsOfTheRunningChainAndTouchesNoOutput) {
  start();
  report::EventLog& log = *running_.chain.logs.at(0);
  ASSERT_TRUE(log.open());
  log.begin();
  put("words.txt", "as they were");
  put("report.json", "as it was");
  const auto reload = plan(with(kChain, "word: first", "word: second"));
  ASSERT_TRUE(reload) << to_string(reload.error()) << "an open log is busy, but it is ours";
  EXPECT_EQ(dynamic_cast<const Probe&>(*reload->functions[2]).log(), &log);
  const auto size = [&](const char* name) { return std::filesystem::file_size(folder_ + "/" + name); };
  EXPECT_EQ(size("words.txt"), 12U);
  EXPECT_EQ(size("report.json"), 9U);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/out.pcap"));
  ASSERT_EQ(reload->texts.size(), 1U);
  ASSERT_TRUE(write_text_outputs(reload->texts));
  std::string word;
  std::ifstream(folder_ + "/words.txt") >> word;
  EXPECT_EQ(word, "second");
  static_cast<void>(log.close());
}

TEST_F(PlannedReload, RefusesAnInputThatTheChainWrites) {
  start();
  put("report.json", "");
  EXPECT_THAT(errors_with("word: first", "file: report.json"), HasSubstr("would overwrite the file that "));
}

TEST_F(PlannedReload, RefusesFunctionsThatDoNotFitOrDoNotAgree) {
  start();
  EXPECT_EQ(errors_with("word: first", "word: more"),
            "chain.yaml:7:5: probe: reads payload, for which the running chain is not planned: it needs a new run");
  EXPECT_THAT(errors_with("word: first", "word: flows"), HasSubstr("chain.yaml:7:5: probe: it needs another part"));
  EXPECT_EQ(errors_with("word: first", "word: never"),
            "chain.yaml:7:5: probe: this word cannot change: found never, expected first");
  start(with(kChain, "word: first", "word: stream"));
  EXPECT_EQ(errors_with("word: first", "word: stream-deep"),
            "chain.yaml:7:5: probe: the options of flows and streams cannot change in a reload: it needs a new run");
  EXPECT_EQ(changes(with(kChain, "word: first", "word: stream-far")), "probe: stream → stream-far\n");
  start(with(kChain, "word: first", "word: more"));
  EXPECT_EQ(changes(), "probe: more → first\n");
}

TEST_F(PlannedReload, ComparesWithTheTraitsOfThePlanNotWithThoseOfTheLastReload) {
  start(with(kChain, "word: first", "word: more"));
  auto reload = plan();
  ASSERT_TRUE(reload);
  running_.chain.functions[2].function = std::move(reload->functions[2]);  // applied
  EXPECT_EQ(changes(with(kChain, "word: first", "word: more")), "probe: first → more\n");
}

TEST_F(PlannedReload, NamesTheSecondFunctionOfAKind) {
  const std::string twice = with(kChain, "  - probe: {word: first}\n", "  - probe\n  - probe: {word: a}\n");
  start(twice);
  EXPECT_EQ(changes(with(twice, "word: a", "word: b")), "probe#2: a → b\n");
  EXPECT_THAT(errors(with(twice, "word: a", "word: never")), HasSubstr("chain.yaml:8:5: probe#2: this word"));
}

TEST_F(PlannedReload, IsStrictIfTheRunIs) {
  start();
  const auto reload = plan(with(kChain, "word: first", "word: odd"));
  ASSERT_TRUE(reload);
  EXPECT_THAT(to_string(reload->unsupported), HasSubstr("an odd word"));
  options_.strict = true;
  EXPECT_EQ(errors_with("word: first", "word: odd"),
            "chain.yaml:7:19: an odd word\n--strict: refused because of the construct above");
}

}  // namespace
}  // namespace penstock::config
