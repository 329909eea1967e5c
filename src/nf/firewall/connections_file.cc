// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "nf/firewall/connections_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/output_file.h"
#include "base/text_file.h"
#include "base/units.h"
#include "conntrack/saved_connections.h"
#include "packet/ip.h"
#include "packet/transport.h"
#include "port/worker_key.h"

namespace penstock::firewall {

namespace {

std::uint64_t system_time_ms() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

/// A connection of whoever could have written the file would pass the rules.
bool only_owner_writes(const struct stat& status) noexcept {
  return (status.st_uid == 0 || status.st_uid == ::geteuid()) && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

}  // namespace

unsigned worker_of(const conntrack::Tuple& original, unsigned workers) {
  port::Fragment packet;
  packet.key.source = original.source;
  packet.key.destination = original.destination;
  packet.key.ip_version = original.ip_version;
  packet.key.protocol = packet.next_protocol = original.protocol;
  const std::uint16_t first = begins_with_ports(original.protocol) ? original.source_port : original.destination_port;
  const std::uint16_t second = begins_with_ports(original.protocol) ? original.destination_port : std::uint16_t{0};
  const std::array<std::uint8_t, 8> header{static_cast<std::uint8_t>(first >> 8), static_cast<std::uint8_t>(first),
                                           static_cast<std::uint8_t>(second >> 8), static_cast<std::uint8_t>(second)};
  return port::worker_of_hash(port::flow_hash_of(packet, header).value_or(0), workers);
}

Result<void> check_connections_file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    return failure(Error{{path, 0, 0},
                         "connections cannot be kept here",
                         "a folder, pipe or device",
                         "a regular file, which may be missing"});
  }
  if (auto kind = check_replaceable(path, "a file of saved connections", &conntrack::is_saved_connections); !kind)
    return kind;
  return check_text_file_writable(path);
}

void load_connections(const std::string& path, conntrack::ConnectionTables& connections) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || status.st_size == 0) return;  // the first run
  if (!only_owner_writes(status)) {
    return log_warning("{}: the connections of the last run are not used: other users could have written the file",
                       path);
  }
  const Result<std::string> text = read_text_file(path);
  auto read = text ? conntrack::read_saved_connections(*text, path, system_time_ms())
                   : Result<std::vector<conntrack::SavedConnection>>(tl::unexpected(text.error()));
  if (!read) return log_warning("the connections of the last run are not used: {}", to_string(read.error()));
  log_info("{}: {} of the last run", path, format_count(read->size(), "connection"));
  connections.restore(std::move(*read), &worker_of);
}

void save_connections(const std::string& path, const conntrack::ConnectionTables& connections) noexcept {
  try {
    // A reload may have brought another path.
    if (const auto possible = check_connections_file(path); !possible)
      return log_error("the connections are not saved: {}", to_string(possible.error()));
    conntrack::SavedConnectionsWriter writer(file_limit());
    connections.for_each_saved([&writer](const conntrack::SavedConnection& saved) { writer.add(saved); });
    const Result<void> written = write_text_file(path, writer.finish(system_time_ms()), FileAccess::owner);
    if (!written) return log_error("the connections are not saved: {}", to_string(written.error()));
    log_info("{}: {} saved", path, format_count(writer.written(), "connection"));
    if (writer.left_out() > 0) {
      log_warning("{}: {} not saved, since the file would be larger than {}; --file-limit raises that", path,
                  format_count(writer.left_out(), "connection"), format_size(file_limit()));
    }
  } catch (const std::exception& error) {
    log_error("the connections are not saved: {}", error.what());
  }
}

}  // namespace penstock::firewall
