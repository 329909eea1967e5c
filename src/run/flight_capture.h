// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The frames that a function on a device drops, for a capture (run/capture.h).

#pragma once

#include <cstddef>
#include <span>

#include "function/network_function.h"
#include "run/capture.h"
#include "run/flight.h"

namespace penstock::run {

/// Offers the frames that `function` dropped in the current segment, which is settled. If earlier functions of the
/// segment have changed them, they are fetched from the device, for which the worker waits; at most a few of a batch.
/// `traits`: by function. `were_listed`: whether the flight's frames were listed before the segment was settled.
void capture_dropped(const Flight& flight, std::span<const function::NfTraits> traits, std::size_t function,
                     bool were_listed, Capture::Session& session);

}  // namespace penstock::run
