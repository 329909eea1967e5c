// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rule sets by the program `nft`: those of the kernel, and files in nft's own syntax. All results are JSON, as
// `nft -j list ruleset` prints it. A program and not libnftables: the library ends the whole process (exit) when it
// lacks memory or gets a message that it does not expect, and nothing bounds its time and memory. Time, output and
// memory of the program are bounded.

#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace penstock::firewall::nftables {

/// How errors name the kernel's rule set.
[[nodiscard]] std::string name_of_kernel_rules(const std::string& netns);

/// The rule set of the calling thread's network namespace, without the values of counters. Consistent: nft lists again
/// what has changed meanwhile. Needs CAP_NET_ADMIN, which the thread passes on (base/capabilities.h).
[[nodiscard]] Result<std::string> list_rules();
/// The same in a thread that passes it on, in a network namespace; "": that of the calling thread.
[[nodiscard]] Result<std::string> list_rules_of(const std::string& netns);

/// Whether the text is in the syntax of nft, as /etc/nftables.conf is.
[[nodiscard]] bool is_nft_syntax(std::string_view text) noexcept;

/// Has nft load `text`, the content of `file`, into an empty network namespace, and list the rules there. The host's
/// rules are neither read nor touched. Mistakes have nft's words and places, also in the files that this one includes.
[[nodiscard]] Result<std::string> translate(std::string_view text, const std::string& file);

}  // namespace penstock::firewall::nftables
