// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "port/live/dpdk/module.h"

#include <rte_eal.h>
#include <rte_errno.h>

#include <thread>

#include "port/live/dpdk/eth_device.h"
#include "port/live/dpdk/log.h"

namespace penstock::port::dpdk {

namespace {

Module::Started start(const std::vector<std::string>& arguments) {
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv;
  argv.reserve(copies.size() + 1);
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Module::Started started;
  // DPDK binds the thread that starts it to cores.
  std::thread([&] {
    const Log log;
    if (rte_eal_init(static_cast<int>(arguments.size()), argv.data()) < 0) {
      started.failure = log.reason("DPDK cannot start", rte_errno);
    } else {
      started.warnings = log.text();
    }
  }).join();
  return started;
}

}  // namespace

}  // namespace penstock::port::dpdk

extern "C" __attribute__((visibility("default"))) const penstock::port::dpdk::Module* penstock_dpdk_module() {
  namespace dpdk = penstock::port::dpdk;
  static constexpr dpdk::Module kModule{dpdk::Module::kVersion, dpdk::start, dpdk::open_device};
  return &kModule;
}
