// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include <pcap/pcap.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "nf/filter/bpf/libpcap_instructions.h"
#include "nf/filter/bpf/read_program.h"

namespace penstock::filter {

namespace {

struct ClosePcap {
  void operator()(pcap_t* pcap) const noexcept { pcap_close(pcap); }
};

/// Frees what pcap_compile() allocated. It leaves an empty program if it fails.
struct Compiled {
  bpf_program program{};
  Compiled() = default;
  Compiled(const Compiled&) = delete;
  Compiled& operator=(const Compiled&) = delete;
  ~Compiled() { pcap_freecode(&program); }
};

/// Captures have LINKTYPE_ numbers where the DLT_ numbers of systems differ.
int dlt_of_linktype(int link_type) noexcept {
  switch (link_type) {
    case 100: return DLT_ATM_RFC1483;
    case 101: return DLT_RAW;
    case 102: return DLT_SLIP_BSDOS;
    case 103: return DLT_PPP_BSDOS;
    case 106: return DLT_ATM_CLIP;
    default: return link_type;
  }
}

}  // namespace

Result<std::vector<Instruction>> compile_for(pcap* capture, const std::string& expression, bool optimize,
                                             std::uint32_t netmask, const Place& place) {
  if (expression.find('\0') != std::string::npos)
    return failure(Error{place, "a filter expression contains a NUL character", in_quotes(expression), {}});
  Compiled compiled;
  if (pcap_compile(capture, &compiled.program, expression.c_str(), optimize ? 1 : 0, netmask) != 0)
    return failure(Error{place,
                         std::string("cannot compile the filter expression: ") + pcap_geterr(capture),
                         in_quotes(expression),
                         {}});
  return from_libpcap({compiled.program.bf_insns, compiled.program.bf_len});
}

Result<Program> compile_expression(const std::string& expression, const CompileOptions& options, const Place& place) {
  const int snap_length =
      static_cast<int>(std::min<std::uint32_t>(options.snap_length, std::numeric_limits<int>::max()));
  const std::unique_ptr<pcap_t, ClosePcap> pcap(pcap_open_dead(dlt_of_linktype(options.link_type), snap_length));
  if (!pcap) return failure(Error{place, "libpcap: out of memory", {}, {}});
  auto instructions = compile_for(pcap.get(), expression, options.optimize, options.netmask, place);
  if (!instructions) return tl::unexpected(std::move(instructions.error()));
  return Program::verify(std::move(*instructions), place, false, options.link_type);
}

}  // namespace penstock::filter
