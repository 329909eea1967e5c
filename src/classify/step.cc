// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "classify/step.h"

namespace penstock::classify {

// Here, since device compilers cannot compare these.
bool operator==(const Operand&, const Operand&) = default;
bool operator==(const Test&, const Test&) = default;
bool operator==(const Alternative&, const Alternative&) = default;
bool operator==(const AnyOf&, const AnyOf&) = default;
bool operator==(const Rate&, const Rate&) = default;
bool operator==(const Quota&, const Quota&) = default;
bool operator==(const ConnectionCount&, const ConnectionCount&) = default;
bool operator==(const RateObject&, const RateObject&) = default;
bool operator==(const QuotaObject&, const QuotaObject&) = default;
bool operator==(const CountObject&, const CountObject&) = default;
bool operator==(const TurnObject&, const TurnObject&) = default;
bool operator==(const ChangingSet::Element&, const ChangingSet::Element&) = default;
bool operator==(const ChangingSet&, const ChangingSet&) = default;
bool operator==(const UseRate&, const UseRate&) = default;
bool operator==(const UseQuota&, const UseQuota&) = default;
bool operator==(const UseCount&, const UseCount&) = default;
bool operator==(const LookUp&, const LookUp&) = default;
bool operator==(const Update&, const Update&) = default;
bool operator==(const SetMark&, const SetMark&) = default;
bool operator==(const Recent&, const Recent&) = default;
bool operator==(const RecentObject&, const RecentObject&) = default;
bool operator==(const Log&, const Log&) = default;
bool operator==(const ClampSegmentSize&, const ClampSegmentSize&) = default;
bool operator==(const GiveHelper&, const GiveHelper&) = default;
bool operator==(const SetField&, const SetField&) = default;
bool operator==(const FindText&, const FindText&) = default;
bool operator==(const AtTime&, const AtTime&) = default;
bool operator==(const HashObject&, const HashObject&) = default;
bool operator==(const LeaveUntracked&, const LeaveUntracked&) = default;
bool operator==(const TrackConnection&, const TrackConnection&) = default;
bool operator==(const TranslateAddresses&, const TranslateAddresses&) = default;
bool operator==(const ReversePath&, const ReversePath&) = default;
bool operator==(const RouteOut&, const RouteOut&) = default;
bool operator==(const StepObjects&, const StepObjects&) = default;

}  // namespace penstock::classify
