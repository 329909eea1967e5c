// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// All port kinds, by their names in the chain file.

#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "base/parameter.h"
#include "port/port.h"

namespace penstock::port {

struct PortKind {
  std::string_view name;
  std::string_view summary;
  ParameterTable parameters;
  /// `index` is the port's position in the chain file. The port stores it in each packet's `in_port`.
  Result<std::unique_ptr<Port>> (*make)(const Parameters& parameters, PortIndex index);
};

[[nodiscard]] std::span<const PortKind> catalog() noexcept;
/// Null if the name is unknown.
[[nodiscard]] const PortKind* find_kind(std::string_view name) noexcept;

}  // namespace penstock::port
