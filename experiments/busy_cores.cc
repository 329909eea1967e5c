// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "experiments/busy_cores.h"

#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace penstock::experiments {

std::optional<double> busy_core_seconds() {
  // "cpu  user nice system idle iowait irq softirq steal …", in ticks; `user` includes guests.
  std::ifstream file("/proc/stat");
  std::string name;
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0;
  if (!(file >> name >> user >> nice >> system >> idle >> iowait >> irq >> softirq) || name != "cpu")
    return std::nullopt;
  const long ticks_per_second = ::sysconf(_SC_CLK_TCK);
  if (ticks_per_second <= 0) return std::nullopt;
  return static_cast<double>(user + nice + system + irq + softirq) / static_cast<double>(ticks_per_second);
}

}  // namespace penstock::experiments
