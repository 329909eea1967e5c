// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/nids/detect/rule_order.h"

#include <gmock/gmock.h>

namespace penstock::nids {
namespace {

using ::testing::ElementsAre;

TEST(EvaluationOrder, PutsPassBeforeDropBeforeAlertRules) {
  std::vector<Rule> rules(4);
  rules[0].action = Action::alert;
  rules[1].action = Action::reject;
  rules[2].action = Action::drop;
  rules[3].action = Action::pass;
  EXPECT_THAT(evaluation_order(rules), ElementsAre(3, 2, 1, 0));
}

TEST(EvaluationOrder, PutsRulesThatSetFlowbitsBeforeRulesThatTestThem) {
  std::vector<Rule> rules(4);
  rules[1].state_matches = {FlowbitsMatch{{0}}};
  rules[2].state_matches = {FlowbitsMatch{{0}}};
  rules[2].state_changes = {FlowbitsChange{FlowbitsChange::How::set, 1}};
  rules[3].state_changes = {FlowbitsChange{FlowbitsChange::How::set, 0}};
  EXPECT_THAT(evaluation_order(rules), ElementsAre(3, 2, 1, 0));
}

TEST(EvaluationOrder, PutsFlowbitsBeforePriority) {
  std::vector<Rule> rules(3);
  rules[0].priority = 1;
  rules[1].priority = 2;
  rules[1].state_changes = {FlowbitsChange{FlowbitsChange::How::set, 0}};
  rules[2].priority = 1;
  EXPECT_THAT(evaluation_order(rules), ElementsAre(1, 0, 2));
}

TEST(EvaluationOrder, KeepsEqualRulesInFileOrder) {
  std::vector<Rule> rules(5);
  rules[2].priority = 1;
  EXPECT_THAT(evaluation_order(rules), ElementsAre(2, 0, 1, 3, 4));
}

}  // namespace
}  // namespace penstock::nids
