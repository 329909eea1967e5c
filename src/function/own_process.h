// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function that could take others along when it fails, such as one with somebody else's code.

#pragma once

namespace penstock::function {

/// Implemented by functions beside NetworkFunction: chains have them in processes of their own only. Such a function
/// takes what it needs of a device in NetworkFunction::begin_run, and not when it is made.
class OwnProcess {
 public:
  virtual ~OwnProcess() = default;
};

}  // namespace penstock::function
