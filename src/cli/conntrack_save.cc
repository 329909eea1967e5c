// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/conntrack_save.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <utility>

#include "base/text_file.h"
#include "base/units.h"
#include "conntrack/saved_connections.h"
#include "nf/firewall/connections_file.h"

namespace penstock::cli {

namespace {

tl::unexpected<control::NoResult> not_written(Errors errors) {
  return tl::unexpected(control::NoResult{kNotWritable, std::move(errors)});
}

}  // namespace

tl::expected<nlohmann::ordered_json, control::NoResult> save_connections(control::Client& client,
                                                                         const nlohmann::ordered_json& request,
                                                                         const std::string& file) {
  if (auto possible = firewall::check_connections_file(file); !possible)
    return not_written(std::move(possible.error()));
  conntrack::SavedConnectionsWriter writer(file_limit());
  const auto add = [&](const nlohmann::ordered_json& event) {
    writer.add_lines(event.at("lines").get_ref<const std::string&>(), event.at("connections").get<std::uint64_t>());
  };
  auto result = client.ask(control::Command::conntrack, request, add);
  if (!result) return result;
  if (const auto format = result->at("format").get<std::uint64_t>(); format != conntrack::kSavedVersion) {
    return not_written({Error{{file, 0, 0},
                              "not written: the run saves connections in another format",
                              fmt::format("version {}", format),
                              fmt::format("version {}, of a run of this penstock", conntrack::kSavedVersion)}});
  }
  if (writer.left_out() > 0) {
    return not_written({Error{{file, 0, 0},
                              "not written: too many connections",
                              fmt::format("more than {}", format_size(file_limit())),
                              "a higher --file-limit"}});
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
  const std::string text = writer.finish(static_cast<std::uint64_t>(now.count()));
  if (auto written = write_text_file(file, text, FileAccess::owner); !written)
    return not_written(std::move(written.error()));
  return result;
}

}  // namespace penstock::cli
