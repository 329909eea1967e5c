// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#pragma once

namespace penstock::function {

/// Implemented by functions, beside NetworkFunction, that share state with the other ones of their process while their
/// run lasts, where beginning anew would do harm: sequence numbers, replay windows, lifetimes. A process that serves
/// chains lets the run of the last one go on when its chain goes, so that the next chain finds that state.
class LastingFunction {
 public:
  virtual ~LastingFunction() = default;
};

}  // namespace penstock::function
