// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Allocates the pages of memory before they are used.

#pragma once

#include <cstdint>
#include <span>

namespace penstock {

/// Makes the kernel allocate and zero the pages that are missing, by several threads if there are many: one is slowed
/// by zeroing. What the pages have stays. Only a hint: Linux before 5.14 cannot do it, and pages for which there is no
/// memory stay missing. The memory begins at a page.
void populate(std::span<std::uint8_t> memory) noexcept;

}  // namespace penstock
