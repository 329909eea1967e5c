// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// Turns the transfer plan into bytes: which functions run on the device together, and how the planned fields cross PCIe
// (ring/lane.h). Pure.
//
//   fields up      whole frames if a stage reads beyond the headers, else headers; in later segments, records of the
//                  fields that the host has changed, or frames or headers again if records cannot carry these
//   fields down    whole frames if fields beyond the headers or the lengths have changed, else records of the changed
//                  fields; at the end of each segment, so that the host can continue if the device fails later

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "function/network_function.h"
#include "plan/fork.h"
#include "plan/transfer_plan.h"
#include "ring/lane.h"

namespace penstock::plan {

/// Whether whole frames cross even if the transfer plan names only some of their fields; `always` is for comparisons.
enum class WholeFrames : bool { where_needed, always };

/// What the functions on a device share. `packets` is the normal case; the others are for comparisons, and with them
/// each function transfers the packets both ways. `parsing`: layouts on the device are shared (Gaviss §5.4,
/// No-Memshare). `stack`: they are not, but the host's protocol stack is. `none`: nor is that; each function has a
/// protocol stack and packet buffers of its own on the host, as in G-NET (Gaviss §5.2; run/own_stacks.h).
enum class Sharing : std::uint8_t { none, stack, parsing, packets };
inline constexpr std::string_view kSharingNames[] = {"none", "stack", "parsing", "packets"};

struct DevicePlan {
  /// Functions [first, last) of the chain on one processor: all of them in the same arm, or none in an arm. Exception:
  /// on the CPU, a fork without a device stage is contained in one run as a whole.
  struct Run {
    function::Processor processor = function::Processor::cpu;
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t segment = 0;            // on a device: the index of its segment
    std::optional<ArmPlace> arm{};      // the arm of its functions: packets of other arms skip the run
    std::optional<std::size_t> fork{};  // the fork that begins with it: arms are chosen before it runs
    bool parses = false;                // records are gathered from packets that no earlier CPU run may have parsed
  };
  std::vector<Run> runs;
  std::vector<ring::SegmentShape> segments;               // empty: nothing runs on a device
  function::Processor device = function::Processor::cpu;  // of all segments; cpu: there are none
  bool hash_flows = false;                                // a device stage reads the flow hash
  bool own_stacks = false;                                // each function on the device has a stack on the host
};

/// Plans the segments and runs of a chain, whose functions run on `processors`. `whole`: with `always`, whole
/// frames cross whatever the plan names. `sharing`: unless it is `packets`, each function is planned as if it were
/// alone; with `parsing`, a function that follows another one on the device uses its layouts, unless the host has
/// changed frames in between. `forks`: the arms of a fork with a device stage become consecutive runs. Fails for
/// functions on several devices.
[[nodiscard]] Result<DevicePlan> plan_device(std::span<const function::NfTraits> chain, const Processors& processors,
                                             WholeFrames whole = WholeFrames::where_needed,
                                             Sharing sharing = Sharing::packets, std::span<const Fork> forks = {});

/// The bytes that all functions together add to a frame.
[[nodiscard]] FrameRoom growth_of(std::span<const function::NfTraits> chain);
/// The number of functions at the start of the chain that run before anything crosses; all of them if nothing runs on
/// the device. The batches themselves only have room for what these add, and are otherwise compact.
[[nodiscard]] std::size_t functions_before_device(const DevicePlan& plan);
/// Whether a later segment sends packets too. Their frames may have grown since the batch was filled.
[[nodiscard]] bool sends_packets_again(const DevicePlan& plan);
/// The room that frames need on the device.
[[nodiscard]] FrameRoom room_on_device(std::span<const function::NfTraits> chain, const DevicePlan& plan);

/// Whether the finish stage modifies returned frames, not just their verdicts.
[[nodiscard]] bool finish_changes_frames(const function::NfTraits& function);

struct CrossingBytes {
  std::uint32_t to_device = 0;
  std::uint32_t to_host = 0;  // for a forwarded packet
};
/// All bytes that cross for a packet with `frame_length` bytes, if its length does not change: frames or records,
/// index, verdicts, flow state, findings, lengths. For a packet on `path`; if it is empty, as if the packet took all
/// arms.
[[nodiscard]] CrossingBytes crossing_bytes(const DevicePlan& plan, std::uint32_t frame_length,
                                           std::span<const std::uint8_t> path = {});

/// How often a packet on `path` crosses to the device and back. If the path is empty, as if it took all arms.
[[nodiscard]] std::size_t round_trips(const DevicePlan& plan, std::span<const std::uint8_t> path = {});

/// How the segment's fields cross: "headers (96 bytes)", "verdicts, records of 24 bytes".
[[nodiscard]] std::string describe_up(const ring::SegmentShape& segment);
[[nodiscard]] std::string describe_down(const ring::SegmentShape& segment);

}  // namespace penstock::plan
