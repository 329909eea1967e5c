// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// The transfer plan in bytes: which functions run over the device together, and in which form the fields cross that the
// plan names (ring/lane.h). Pure.
//
//   fields up      whole frames where a stage reads what is behind the headers, else headers; later, records
//   fields down    whole frames where such fields or the lengths have changed, else records of the changed fields; at
//                  the end of each segment, so that the host can go on by itself if the device fails later

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

/// Whether frames cross whole even where the transfer plan names only some of their fields: for comparisons.
enum class WholeFrames : bool { where_needed, always };

/// What the functions on a GPU share there. The others are for comparisons: nothing, so that each brings the packets
/// there and back and parses them by itself, as G-NET does (Gaviss §5.2); or what parsing found, and each brings the
/// packets there and back (Gaviss §5.4, No-Memshare).
enum class Sharing : std::uint8_t { none, parsing, packets };
inline constexpr std::string_view kSharingNames[] = {"none", "parsing", "packets"};

struct DevicePlan {
  /// Functions [first, last) of the chain, on one processor: all of one arm, or none in an arm. But for those on the
  /// CPU: a fork whose arms have no stage on the device is in one run, whole.
  struct Run {
    function::Processor processor = function::Processor::cpu;
    std::size_t first = 0;
    std::size_t last = 0;
    std::size_t segment = 0;            // of the GPU's
    std::optional<ArmPlace> arm{};      // that its functions are in: the others' packets pass it by
    std::optional<std::size_t> fork{};  // that begins with it: arms are decided before it runs
    bool parses = false;                // records are gathered of packets that no CPU run before it need have parsed
  };
  std::vector<Run> runs;
  std::vector<ring::SegmentShape> segments;  // none: nothing runs on the device
  bool hash_flows = false;                   // a GPU stage reads the flow hash
};

/// `whole`: always: frames cross whole, whatever the plan names (for comparisons, and for functions that will need it).
/// `sharing`: unless it is packets, each function is planned for as if it were alone; parsing: one behind another on
/// the device has its layouts, unless the host has changed frames between the two. Fails where a field would have to
/// cross between two GPU stages that cannot cross alone, and where packets are not shared and there are forks.
/// `forks`: the arms of one with a stage on the device are runs one after the other.
[[nodiscard]] Result<DevicePlan> plan_device(std::span<const function::NfTraits> chain,
                                             WholeFrames whole = WholeFrames::where_needed,
                                             Sharing sharing = Sharing::packets, std::span<const Fork> forks = {});

/// What the functions add to a frame in all.
[[nodiscard]] FrameRoom growth_of(std::span<const function::NfTraits> chain);
/// How many functions, the first of the chain, run before anything crosses; all of them where nothing runs on the
/// device. Frames have room for what these add in the batches themselves, which else are compact.
[[nodiscard]] std::size_t functions_before_device(const DevicePlan& plan);
/// Whether a later segment sends packets as well: their frames may have grown since the batch was filled.
[[nodiscard]] bool sends_packets_again(const DevicePlan& plan);
/// What frames need there.
[[nodiscard]] FrameRoom room_on_device(std::span<const function::NfTraits> chain, const DevicePlan& plan);

/// Whether its finish stage does more with a frame that has come back than to decide about it.
[[nodiscard]] bool finish_changes_frames(const function::NfTraits& function);

struct CrossingBytes {
  std::uint32_t to_device = 0;
  std::uint32_t to_host = 0;  // of a packet that is forwarded
};
/// Per packet with frames of `frame_length` bytes that stay so long, all that crosses counted: index, verdicts, flow
/// state, findings, lengths. On the path `path`; empty: as if the packet went through all arms.
[[nodiscard]] CrossingBytes crossing_bytes(const DevicePlan& plan, std::uint32_t frame_length,
                                           std::span<const std::uint8_t> path = {});

/// "headers (96 bytes)", "verdicts, records of 24 bytes": how the segment's fields cross.
[[nodiscard]] std::string describe_up(const ring::SegmentShape& segment);
[[nodiscard]] std::string describe_down(const ring::SegmentShape& segment);

}  // namespace penstock::plan
