// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "experiments/limits.h"
#include "experiments/workload.h"
#include "gpu/devices.h"

namespace penstock::experiments {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::atomic<bool> stop;
std::string fails_at;   // the value of `size` at which the trial fails, throws or is stopped
std::string cannot_at;  // the value of `size` that the machine cannot measure
enum class How { error, exception, interrupt, interrupt_with_error } how;

class Fake final : public Trial {
 public:
  explicit Fake(const Setting& setting) : setting_(setting) {}
  std::vector<Point> plan() override {
    std::vector<Point> points;
    for (const int size : {1, 2, 3}) points.push_back(Point().set("size", size).set("processor", "cpu"));
    points.push_back(Point().set("size", 3).set("processor", "gpu"));
    return points;
  }
  std::string make_ready(const Point& point) override {
    return point.text("size") == cannot_at ? "the machine is too small" : "";
  }
  Result<void> measure(Point& point, const Point& limits) override {
    if (point.text("size") == fails_at) {
      if (how == How::error) return failure({{}, "a wrong result", "1", "2"});
      if (how == How::exception) throw std::runtime_error("the device is lost");
      stop = true;
      if (how == How::interrupt_with_error) return failure({{}, "a wrong result", "1", "2"});
    }
    point.set("repeats", setting_.repeats).set("has_limits", limits.number("memory_copy_one_core").value_or(0) > 0);
    point.set("known", known_);
    return {};
  }
  void remember(const Point& point) override { known_ += point.text("size"); }

 private:
  const Setting& setting_;
  std::string known_;  // sizes of the points that the resumed record has
};

Result<std::unique_ptr<Trial>> start(const Setting& setting) {
  if (setting.rules == "bad") return failure({{"bad", 1, 0}, "no rule", "", ""});
  return std::make_unique<Fake>(setting);
}
const std::vector<Figure>& no_figures() {
  static const std::vector<Figure> none;
  return none;
}
const Differences& no_differences() {
  static const Differences none;
  return none;
}
const std::vector<Conditions>& size_three() {
  static const std::vector<Conditions> headlines{{{"size", {"3"}}, {"processor", {"cpu"}}}};
  return headlines;
}
const Experiment kFake{"fake",           "a summary", "a source", 2,     milliseconds{100},
                       milliseconds{10}, 1,           true,       false, &no_figures,
                       &no_differences,  &size_three, &start};

class Sessions : public ::testing::Test {
 protected:
  void SetUp() override {
    stop = false;
    fails_at = cannot_at = "";
    if (gpu::list_devices().availability == gpu::Availability::kUsable) GTEST_SKIP() << "of machines without a GPU";
  }
  static Session open(const Options& options) {
    auto session = Session::open(kFake, options, stop);
    EXPECT_TRUE(session) << to_string(session.error());
    return std::move(*session);
  }
  static std::string refusal(const Options& options) {
    auto session = Session::open(kFake, options, stop);
    EXPECT_FALSE(session);
    return session ? "" : to_string(session.error());
  }
  static std::vector<std::string> sizes(const Record& record) {
    std::vector<std::string> sizes;
    for (const Point& point : record.points) sizes.push_back(point.text("size"));
    return sizes;
  }
};

TEST_F(Sessions, MeasurePlannedPointsAndLeaveOutThoseThatNeedAGpu) {
  Options options;
  options.command = "penstock bench fake";
  Session session = open(options);
  EXPECT_EQ(session.points(), 3U);
  std::vector<std::string> progress_lines;
  const Errors errors = session.run([&](const Progress& progress) {
    progress_lines.push_back(std::to_string(progress.number) + "/" + std::to_string(progress.count) + " " +
                             progress.what);
  });
  EXPECT_TRUE(errors.empty());
  const Record& record = session.record();
  EXPECT_TRUE(record.complete);
  EXPECT_THAT(sizes(record), ElementsAre("1", "2", "3"));
  ASSERT_EQ(record.left_out.size(), 1U);
  EXPECT_THAT(record.left_out[0], HasSubstr("1 of 4 points, those on a GPU: "));
  EXPECT_THAT(progress_lines, ElementsAre("0/3 the machine's limits", "1/3 size=1 processor=cpu",
                                          "2/3 size=2 processor=cpu", "3/3 size=3 processor=cpu headline=true"));
  EXPECT_EQ(record.points[0].number("repeats"), 2) << "the experiment's own";
  EXPECT_EQ(record.points[2].number("repeats"), 5) << "of a headline point";
  EXPECT_EQ(record.points[0].text("has_limits"), "true") << "limits come first";
  EXPECT_EQ(record.experiment, "fake");
  EXPECT_EQ(record.command, "penstock bench fake");
  EXPECT_EQ(record.date.size(), 20U);
  EXPECT_GT(record.machine.cores, 0U);
}

TEST_F(Sessions, LeaveOutWhatTheMachineTurnsOutToBeUnableToMeasure) {
  cannot_at = "2";
  Options options;
  options.only = {{"processor", {"cpu"}}};
  Session session = open(options);
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_THAT(sizes(session.record()), ElementsAre("1", "3"));
  EXPECT_THAT(session.record().left_out, ElementsAre("1 of 3 points: the machine is too small"));
  EXPECT_TRUE(session.record().complete) << "nothing else can be measured here";
  EXPECT_EQ(session.left_out(), 1U);
}

TEST_F(Sessions, MeasureOnlyTheSelectedPoints) {
  Options options;
  options.only = {{"size", {"1", "3"}}, {"processor", {"cpu"}}};
  options.repeats = 4;
  Session session = open(options);
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_THAT(sizes(session.record()), ElementsAre("1", "3"));
  EXPECT_EQ(session.record().points[0].number("repeats"), 4);
  EXPECT_EQ(session.record().points[1].number("repeats"), 4) << "of a headline point, too";
  EXPECT_TRUE(session.record().left_out.empty());
}

TEST_F(Sessions, RefuseASelectionThatMatchesNoPoint) {
  Options options;
  options.only = {{"sise", {"1"}}};
  EXPECT_EQ(refusal(options), "--only: unknown key: found 'sise', expected size");
  options.only = {{"size", {"1", "4"}}};
  EXPECT_EQ(refusal(options), "--only: size: no point has this value: found '4', expected one of 1, 2, 3");
  options.only = {{"size", {"1"}}, {"processor", {"gpu"}}};
  EXPECT_EQ(refusal(options), "--only: no point has all of these values");
  options.only = {{"processor", {"gpu"}}};
  EXPECT_THAT(refusal(options), HasSubstr("all requested points need a GPU: found "));
}

TEST_F(Sessions, RefuseOptionsThatTheExperimentCannotUse) {
  Options options;
  options.routes = "routes.txt";
  options.gpus = {0, 7};
  const std::string all = refusal(options);
  EXPECT_THAT(all, HasSubstr("--routes: the experiment fake takes no routes"));
  EXPECT_THAT(all, HasSubstr("--gpus: the experiment fake uses fewer GPUs: found 2, expected at most 1"));
  EXPECT_THAT(all, HasSubstr("--gpus: this GPU cannot be used: "));
  Options bad;
  bad.rules = "bad";
  EXPECT_EQ(refusal(bad), "bad:1: no rule");
}

TEST_F(Sessions, KeepPointsMeasuredBeforeAnError) {
  fails_at = "2";
  how = How::error;
  Session session = open({});
  const Errors errors = session.run({});
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_THAT(sizes(session.record()), ElementsAre("1"));
  EXPECT_FALSE(session.record().complete);
  EXPECT_THAT(session.record().errors, ElementsAre("a wrong result: found 1, expected 2"));
}

TEST_F(Sessions, KeepPointsMeasuredBeforeAnException) {
  fails_at = "3";
  how = How::exception;
  Session session = open({});
  EXPECT_THROW(static_cast<void>(session.run({})), std::runtime_error);
  EXPECT_THAT(sizes(session.record()), ElementsAre("1", "2"));
  EXPECT_FALSE(session.record().complete);
}

TEST_F(Sessions, DiscardThePointThatWasStopped) {
  for (const How way : {How::interrupt, How::interrupt_with_error}) {
    stop = false;
    fails_at = "2";
    how = way;
    Session session = open({});
    EXPECT_TRUE(session.run({}).empty()) << "a result of what was cut short";
    EXPECT_THAT(sizes(session.record()), ElementsAre("1"));
    EXPECT_TRUE(session.record().errors.empty());
    EXPECT_FALSE(session.record().complete);
  }
}

class ResumedSessions : public Sessions {
 protected:
  std::string record(const std::vector<Point>& points, const std::function<void(Record&)>& change = {}) const {
    Session of_now = open({});
    Record record = of_now.record();
    record.points = points;
    if (change) change(record);
    return folder_.put("record.json", to_json(record));
  }
  static Point kept(int size) {
    Point point = Point().set("size", size).set("processor", "cpu").set("repeats", 99);
    return size == 3 ? point.set("headline", true) : point;
  }
  const Workplace folder_;
};

TEST_F(ResumedSessions, MeasureOnlyWhatTheRecordLacksInTheOrderOfThePlan) {
  Options options;
  options.resume = record({kept(3), kept(1), kept(3).set("processor", "gpu")});
  Session session = open(options);
  EXPECT_EQ(session.points(), 1U);
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_TRUE(session.record().complete);
  EXPECT_THAT(sizes(session.record()), ElementsAre("1", "2", "3", "3")) << "the point of a GPU is kept without one";
  EXPECT_EQ(session.record().points[0].number("repeats"), 99);
  EXPECT_EQ(session.record().points[1].number("repeats"), 2);
  EXPECT_EQ(session.record().points[1].text("known"), "133") << "points that are compared need the others";
}

TEST_F(ResumedSessions, KeepPointsThatAreNotSelected) {
  Options options;
  options.resume = record({kept(1)});
  options.only = {{"size", {"2"}}};
  Session session = open(options);
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_THAT(sizes(session.record()), ElementsAre("1", "2"));
}

TEST_F(ResumedSessions, NameTheCommandsOfAllTheirPoints) {
  Options options;
  options.command = "bench fake --resume r.json --json r.json";
  options.resume = record({kept(1)}, [](Record& record) { record.command = "bench fake --repeats 5 --json r.json"; });
  const std::string both = "bench fake --repeats 5 --json r.json; bench fake --resume r.json --json r.json";
  EXPECT_EQ(open(options).record().command, both);
  options.resume = record({kept(1)}, [&](Record& record) { record.command = both; });
  EXPECT_EQ(open(options).record().command, both) << "a run that is resumed again by the same command";
}

TEST_F(ResumedSessions, HaveNothingToMeasureIfTheRecordHasAllPoints) {
  Options options;
  options.resume = record({kept(2)});
  options.only = {{"size", {"2"}}};
  Session session = open(options);
  EXPECT_EQ(session.points(), 0U);
  EXPECT_TRUE(session.run({}).empty());
  EXPECT_TRUE(session.record().complete);
  EXPECT_THAT(sizes(session.record()), ElementsAre("2"));
}

TEST_F(ResumedSessions, RefuseARecordOfAnotherMachineOrProgram) {
  Options options;
  options.resume = record({kept(1)}, [](Record& record) {
    record.machine.cores += 1;
    record.commit = "0123";
    record.experiment = "other";
  });
  const std::string all = refusal(options);
  EXPECT_THAT(all, HasSubstr("the record to resume has another experiment: found 'other', expected 'fake'"));
  EXPECT_THAT(all, HasSubstr("the record to resume has another program (commit): found '0123'"));
  EXPECT_THAT(all, HasSubstr("the record to resume has another number of cores"));
  options.resume = "no-such-record.json";
  EXPECT_THAT(refusal(options), HasSubstr("no-such-record.json"));
}

TEST(Limits, IncludeOnlyCompletedMeasurements) {
  const std::atomic<bool> at_once{true};
  EXPECT_TRUE(measure_limits(2, {}, at_once).empty());
}

}  // namespace
}  // namespace penstock::experiments
