// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function that another process serves, which sees packets where the chain has them.

#pragma once

namespace penstock::function {

/// Implemented by functions beside NetworkFunction: batches of their chain lie in memory that other processes can map
/// (base/shared_memory.h). Frames elsewhere, such as those that functions have moved, it has to copy.
class PacketSharing {
 public:
  virtual ~PacketSharing() = default;
};

}  // namespace penstock::function
