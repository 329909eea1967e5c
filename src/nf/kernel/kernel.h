// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A function whose packets somebody else's kernel decides about (function/kernel_abi.h). It only runs in a process of
// its own: a fault of the kernel ends all that this process does on the device.
//
//     bursts ─▶ pack (batch_packing.h) ─▶ Launcher: copy, launch, copy back ─▶ check and take verdicts

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "nf/kernel/launcher.h"
#include "nf/kernel/module_file.h"
#include "packet/field.h"

namespace penstock::kernel {

/// A variable of the module, and the value that it gets.
struct Value {
  std::string name;
  std::uint64_t value = 0;
};

/// What a device runs.
struct Program {
  std::string path;  // of the module, for errors
  ModuleFile module;
  std::string entry;
  std::vector<Value> values;
  std::vector<char> table;
  unsigned block = 128;  // threads
  int gpu = 0;
  std::chrono::nanoseconds limit{};  // of a launch; then it has failed
};

/// What the function tells its chain.
struct Declaration {
  FieldSet reads;   // of frames
  FieldSet writes;  // of frames, and `mark`
  std::vector<std::string> drops;
  std::string what;  // the module and its kernel, for descriptions
};

/// Makes the device that will run the kernel, when a run begins.
using MakeDevice = std::function<Result<std::unique_ptr<Device>>()>;
[[nodiscard]] std::unique_ptr<function::NetworkFunction> make_kernel(Declaration declaration, MakeDevice make_device);

[[nodiscard]] const function::NfKind& kernel_kind();

}  // namespace penstock::kernel
