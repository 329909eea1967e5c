// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "bench/dpdk/dpdk.h"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace penstock::bench {
namespace {

/// Without huge pages, DPDK's memory is a shared file of small pages. Replaces it with anonymous memory, for which the
/// kernel may use large pages; DPDK has written only a few of its pages so far.
int offer_huge_pages(const rte_memseg_list* list, void*) {
  constexpr std::size_t kPage = 4096;
  auto* const base = static_cast<std::byte*>(list->base_va);
  std::vector<unsigned char> resident((list->len + kPage - 1) / kPage);
  if (::mincore(base, list->len, resident.data()) != 0) return -1;
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> written;
  for (std::size_t page = 0; page < resident.size(); ++page) {
    std::byte* const begin = base + page * kPage;
    if ((resident[page] & 1) != 0) written.emplace_back(page, std::vector<std::byte>(begin, begin + kPage));
  }
  if (::mmap(base, list->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != base)
    return -1;
  (void)::madvise(base, list->len, MADV_HUGEPAGE);
  for (const auto& [page, bytes] : written) std::ranges::copy(bytes, base + page * kPage);
  return 0;
}

}  // namespace

void start_dpdk(std::size_t megabytes) {
  std::string memory = std::to_string(megabytes);
  std::string arguments[] = {"bench", "--no-huge", "--no-pci",    "--no-shconf", "--no-telemetry",
                             "-l",    "0",         "--log-level", "error",       "--force-max-simd-bitwidth=512",
                             "-m",    memory};
  char* argv[std::size(arguments) + 1] = {};
  for (std::size_t i = 0; i < std::size(arguments); ++i) argv[i] = arguments[i].data();
  if (rte_eal_init(static_cast<int>(std::size(arguments)), argv) < 0)
    throw std::runtime_error(std::string("rte_eal_init: ") + rte_strerror(rte_errno));
  if (rte_memseg_list_walk(offer_huge_pages, nullptr) != 0) throw std::runtime_error("cannot replace DPDK's memory");
}

}  // namespace penstock::bench
