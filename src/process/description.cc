// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "process/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "conntrack/packet_connection.h"
#include "function/connection_reader.h"

namespace penstock::process {

namespace {

/// What a function may write besides bytes of frames.
constexpr FieldSet kMetadata{Field::verdict, Field::mark};
/// … if it changes the length of frames.
constexpr FieldSet kShape{Field::frame_shape, Field::wire_length};

FieldSet byte_fields() noexcept { return FieldSet::of_bits((std::uint64_t{1} << kByteFieldCount) - 1); }

bool is_word(std::string_view text) noexcept {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

Error problem(std::string message, std::string found = "", std::string expected = "") {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

}  // namespace

Result<Hello> hello_of(std::string_view function, const Surroundings& surroundings) {
  if (surroundings.ports.size() > kMostPorts)
    return failure(problem("too many ports for a chain with functions in other processes",
                           std::to_string(surroundings.ports.size()), fmt::format("{} or fewer", kMostPorts)));
  Hello hello;
  hello.function = Text<kLongestName>(function);
  hello.ports = static_cast<std::uint32_t>(surroundings.ports.size());
  if (surroundings.knows_exits) hello.flags |= Hello::kKnowsExits;
  if (surroundings.out_port_known) hello.flags |= Hello::kOutPortKnown;
  for (std::size_t p = 0; p < surroundings.ports.size(); ++p) {
    const Surroundings::Port& port = surroundings.ports[p];
    PortMessage& message = hello.port[p];
    message.name = Text<kLongestName>(port.name);
    message.exit = port.exit;
    if (port.reads) message.flags |= PortMessage::kReads;
    if (port.writes) message.flags |= PortMessage::kWrites;
    if (port.is_live) message.flags |= PortMessage::kIsLive;
    if (port.answers) message.flags |= PortMessage::kAnswers;
  }
  return hello;
}

Result<Surroundings> surroundings_of(const Hello& hello) {
  if (hello.ports > kMostPorts) return failure(problem("more ports than a message has"));
  Surroundings surroundings;
  surroundings.knows_exits = (hello.flags & Hello::kKnowsExits) != 0;
  surroundings.out_port_known = (hello.flags & Hello::kOutPortKnown) != 0;
  for (const PortMessage& message : std::span(hello.port).first(hello.ports)) {
    const std::string_view name = message.name.view();
    const bool is_known = message.exit < hello.ports || message.exit == kNoPort;
    if (name.empty() || name != printable(name) || !is_known) return failure(problem("not a port of a chain"));
    const auto is = [&](PortMessage::Flag flag) { return (message.flags & flag) != 0; };
    surroundings.ports.push_back({std::string(name), is(PortMessage::kReads), is(PortMessage::kWrites),
                                  is(PortMessage::kIsLive), is(PortMessage::kAnswers),
                                  static_cast<PortIndex>(message.exit)});
  }
  return surroundings;
}

bool changes_lengths(const function::NfTraits& traits) noexcept { return traits.cpu.writes.has(Field::frame_shape); }

std::string why_not_served(const function::NetworkFunction& function) {
  const function::NfTraits& traits = function.traits();
  if (traits.connections) {
    const auto* const reader = dynamic_cast<const function::ConnectionReader*>(&function);
    if (reader == nullptr) return "it changes connections, which the functions of a chain share";
    if (std::string why = reader->why_needs_connections(); !why.empty()) return why;
  }
  const bool grows = traits.growth.head > 0 || traits.growth.tail > 0;
  if (grows && !changes_lengths(traits))
    return "it adds bytes to frames, but does not say that it changes their length";
  if (std::max(traits.growth.head, traits.growth.tail) > kMostGrowth)
    return fmt::format("it adds {} bytes to frames, more than {}", std::max(traits.growth.head, traits.growth.tail),
                       kMostGrowth);
  if (traits.replaces_frames) return "it moves packets to larger frames";
  if (traits.emits) return "it makes packets, such as answers";
  if (traits.asks_for_arrivals) return "it asks for packets as they arrived at the chain";
  const FieldSet shape = changes_lengths(traits) ? kShape : FieldSet{};
  if (const FieldSet others = traits.cpu.writes - byte_fields() - kMetadata - shape; !others.empty())
    return "it writes " + to_string(others);
  return "";
}

std::string why_no_stage(const function::NfTraits& traits, const function::StageNeeds& stage, bool confirms) {
  if (traits.connections) {
    if (stage.state_bytes != sizeof(conntrack::PacketConnection))
      return "its stage needs more of connections than their states";
    // Its process decides about packets that may begin one while a batch is made ready for the device.
    if (!(traits.cpu.writes & (byte_fields() | kShape)).empty()) return "it reads connections, and changes packets";
  }
  if (confirms) {
    if (!(traits.cpu.writes & byte_fields()).empty()) return "it changes packets, and its process finishes them";
    if (!stage.access.writes.empty()) return "its stage decides, and its process confirms what it finds";
    if (stage.findings_bytes < function::ClearFindings::kBytes || stage.findings_bytes > kMostFindings)
      return fmt::format("its stage finds {} bytes about a packet, which its process would have to confirm",
                         stage.findings_bytes);
  } else {
    if (traits.finish && !traits.finish_counts) return "its process finishes what its stage begins";
    if (traits.stack != stack::StackNeed::none) return "it follows flows or joins fragments";
  }
  if (stage.state_bytes != traits.state_bytes || stage.state_bytes > kMostStates || stage.state_bytes % 8 != 0)
    return fmt::format("its stage needs {} bytes of state about a packet", stage.state_bytes);
  if (stage.growth.head > traits.growth.head || stage.growth.tail > traits.growth.tail)
    return "its stage adds more bytes to frames than the function";
  if (stage.chooses_port && !traits.names_ports()) return "its stage chooses where packets leave";
  const FieldSet bytes = traits.cpu.writes & byte_fields();
  const FieldSet of_function =
      (bytes.empty() ? FieldSet{} : byte_fields()) | (changes_lengths(traits) ? kShape : FieldSet{});
  if (const FieldSet others = stage.access.writes - of_function - FieldSet{Field::verdict}; !others.empty())
    return "its stage writes " + to_string(others);
  return "";
}

namespace {

ConnectionsMessage message_of_options(const conntrack::Options& options) {
  ConnectionsMessage message;
  message.most_connections = options.most_connections;
  message.most_fragments = options.most_fragments;
  message.most_expectations = options.most_expectations;
  message.most_retransmissions = options.tcp_max_retrans;
  if (options.checksum) message.flags |= ConnectionsMessage::kChecksum;
  if (options.tcp_loose) message.flags |= ConnectionsMessage::kLoose;
  if (options.tcp_be_liberal) message.flags |= ConnectionsMessage::kLiberal;
  if (options.tcp_ignore_invalid_rst) message.flags |= ConnectionsMessage::kIgnoreInvalidReset;
  message.timeouts = std::bit_cast<decltype(message.timeouts)>(options.timeouts);
  return message;
}

/// Empty: no function can have these.
std::optional<conntrack::Options> options_of(const ConnectionsMessage& message) {
  constexpr std::uint32_t kMostConnections = 100'000'000, kMostOthers = 1 << 20, kLongest = 365 * 24 * 3600;
  const bool is_possible =
      message.most_connections > 0 && message.most_connections <= kMostConnections &&
      message.most_fragments <= kMostOthers && message.most_expectations <= kMostOthers &&
      message.most_retransmissions <= std::numeric_limits<std::uint8_t>::max() &&
      std::ranges::all_of(message.timeouts, [](std::uint32_t seconds) { return seconds > 0 && seconds <= kLongest; });
  if (!is_possible) return std::nullopt;
  conntrack::Options options;
  options.most_connections = message.most_connections;
  options.most_fragments = message.most_fragments;
  options.most_expectations = message.most_expectations;
  options.tcp_max_retrans = static_cast<std::uint8_t>(message.most_retransmissions);
  options.checksum = (message.flags & ConnectionsMessage::kChecksum) != 0;
  options.tcp_loose = (message.flags & ConnectionsMessage::kLoose) != 0;
  options.tcp_be_liberal = (message.flags & ConnectionsMessage::kLiberal) != 0;
  options.tcp_ignore_invalid_rst = (message.flags & ConnectionsMessage::kIgnoreInvalidReset) != 0;
  options.timeouts = std::bit_cast<conntrack::Timeouts>(message.timeouts);
  return options;
}

}  // namespace

Result<Description> description_of(const function::NetworkFunction& function, const function::StageNeeds* stage) {
  const function::NfTraits& traits = function.traits();
  if (traits.drop_reasons.size() > kMostReasons)
    return failure(problem(fmt::format("{} has too many drop reasons", traits.name),
                           std::to_string(traits.drop_reasons.size()), fmt::format("{} or fewer", kMostReasons)));
  Description description;
  description.reads = traits.cpu.reads.bits();
  description.writes = traits.cpu.writes.bits();
  description.name = Text<kLongestName>(traits.name);
  description.reasons = static_cast<std::uint32_t>(traits.drop_reasons.size());
  for (std::size_t r = 0; r < traits.drop_reasons.size(); ++r)
    description.reason[r] = Text<kLongestReason>(traits.drop_reasons[r]);
  if (traits.chooses_port) description.flags |= Description::kChoosesPort;
  if (traits.chooses_some_ports) description.flags |= Description::kChoosesSomePorts;
  if (traits.one_worker) description.flags |= Description::kOneWorker;
  if (traits.stack != stack::StackNeed::none) description.flags |= Description::kTracksFlows;
  if (const auto clear = function::confirmed_findings(function)) {
    description.flags |= Description::kConfirms;
    if (traits.finish_waits) description.flags |= Description::kFinishWaits;
    description.finish_reads = traits.finish->reads.bits();
    description.finish_writes = traits.finish->writes.bits();
    description.clear_mask = clear->mask;
    description.clear_value = clear->value;
  }
  description.head = traits.growth.head;
  description.tail = traits.growth.tail;
  if (stage != nullptr) {
    description.flags |= Description::kHasStage;
    description.state_reads = traits.state_reads.bits();
    description.stage = function::to_message(*stage);
  }
  if (traits.connections) {
    description.flags |= Description::kReadsConnections;
    description.connections = message_of_options(*traits.connections);
  }
  description.text = Text<256>(function.description());
  return description;
}

Description refusal(const Error& error) {
  Description description;
  description.failed = 1;
  const std::string where = error.place.file.empty() ? ""
                            : error.place.line == 0  ? error.place.file + ": "
                                                     : fmt::format("{}:{}: ", error.place.file, error.place.line);
  description.text = Text<256>(where + error.message);
  description.found = Text<256>(error.found);
  description.expected = Text<256>(error.expected);
  return description;
}

Error error_of(const Description& refusal) {
  return problem(printable(refusal.text.view()), printable(refusal.found.view()), printable(refusal.expected.view()));
}

Result<std::unique_ptr<const ServedTraits>> ServedTraits::read(const Description& description,
                                                               std::string_view function, bool in_proxy,
                                                               bool passes_when_lost) {
  if (description.failed != 0) {
    Error error = error_of(description);
    error.message = "the function's process refuses: " + error.message;
    return failure(std::move(error));
  }
  if (description.name.view() != function)
    return failure(problem("another function runs there", in_quotes(description.name.view()), in_quotes(function)));
  const auto wrong = [](const std::string& what) {
    return failure(problem("the function's process says nonsense about " + what));
  };
  if (description.reasons > kMostReasons) return wrong("its drop reasons");
  std::unique_ptr<ServedTraits> served(new ServedTraits);
  served->name_ = function;
  std::vector<std::string>& texts = served->texts_;
  for (std::uint32_t r = 0; r < description.reasons; ++r) {
    std::string reason(description.reason[r].view());
    if (!is_word(reason) || reason == kLost || std::ranges::find(texts, reason) != texts.end())
      return wrong("its drop reasons");
    texts.push_back(std::move(reason));
  }
  texts.emplace_back(kLost);
  const FieldSet writes = FieldSet::of_bits(description.writes);
  const FieldSet shape = writes.has(Field::frame_shape) ? kShape : FieldSet{};
  if (!(writes - byte_fields() - kMetadata - shape).empty() || (description.writes >> kFieldCount) != 0)
    return wrong("what it writes");
  const bool is_bounded = std::max(description.head, description.tail) <= (shape.empty() ? 0 : kMostGrowth);
  if (!is_bounded) return wrong("how frames may grow");
  served->changes_bytes_ = !(writes & byte_fields()).empty();
  served->tracks_flows_ = (description.flags & Description::kTracksFlows) != 0;
  served->reasons_.assign(texts.begin(), texts.end());
  function::NfTraits& traits = served->traits_;
  traits.name = served->name_;
  traits.summary = "in another process";
  // Without its process, packets are dropped.
  traits.cpu = {FieldSet::of_bits(description.reads) | FieldSet{Field::verdict}, writes | FieldSet{Field::verdict}};
  traits.chooses_port = (description.flags & Description::kChoosesPort) != 0;
  traits.chooses_some_ports = (description.flags & Description::kChoosesSomePorts) != 0;
  traits.one_worker = (description.flags & Description::kOneWorker) != 0;
  traits.drop_reasons = served->reasons_;
  traits.growth = {description.head, description.tail};
  if ((description.flags & Description::kReadsConnections) != 0) {
    traits.connections = options_of(description.connections);
    if (!traits.connections || served->tracks_flows_) return wrong("connections");
  }
  if ((description.flags & Description::kConfirms) != 0) {
    const FieldSet finish_writes = FieldSet::of_bits(description.finish_writes);
    const bool is_known = (description.finish_reads >> kFieldCount | description.finish_writes >> kFieldCount) == 0;
    if (!is_known || !(finish_writes - FieldSet{Field::verdict}).empty()) return wrong("what it confirms");
    served->clear_findings_ = {description.clear_mask, description.clear_value};
  }
  if ((description.flags & Description::kHasStage) == 0) return served;
  constexpr std::uint32_t kMostBytes = 4096;  // of findings about a packet, in a lane
  const auto stage = function::needs_of(description.stage);
  if (!stage || (description.state_reads >> kFieldCount) != 0) return wrong("its stage on a device");
  traits.state_bytes = stage->state_bytes;
  const bool follows_flows = served->tracks_flows_ && !served->clear_findings_;
  if (stage->findings_bytes > kMostBytes || follows_flows ||
      !why_no_stage(traits, *stage, served->clear_findings_.has_value()).empty())
    return wrong("its stage on a device");
  if (!in_proxy) {
    traits.state_bytes = 0;
    return served;
  }
  traits.state_reads = FieldSet::of_bits(description.state_reads);
  served->stage_ = stage;
  traits.devices[function::Processor::gpu] = stage->access;
  traits.findings_bytes = stage->findings_bytes;
  if (!served->clear_findings_) return served;
  // Without its process, packets are dropped: then they must not leave before.
  const FieldSet drops = passes_when_lost ? FieldSet{} : FieldSet{Field::verdict};
  traits.finish = {FieldSet::of_bits(description.finish_reads) | drops,
                   FieldSet::of_bits(description.finish_writes) | drops};
  traits.finish_waits = (description.flags & Description::kFinishWaits) != 0 && traits.finish->writes.empty();
  return served;
}

bool are_alike(const Description& one, const Description& other) noexcept {
  constexpr std::uint32_t kOfStage = Description::kHasStage;
  return (one.flags | kOfStage) == (other.flags | kOfStage) && one.reads == other.reads && one.writes == other.writes &&
         one.name.bytes == other.name.bytes && one.reasons == other.reasons && one.finish_reads == other.finish_reads &&
         one.finish_writes == other.finish_writes && one.head == other.head && one.tail == other.tail &&
         one.clear_mask == other.clear_mask && one.clear_value == other.clear_value &&
         one.connections == other.connections &&
         std::ranges::equal(one.reason, other.reason, {}, &Text<kLongestReason>::bytes, &Text<kLongestReason>::bytes);
}

bool exchanges_the_same(const Description& one, const Description& other) noexcept {
  const auto has_stage = [](const Description& description) { return description.flags & Description::kHasStage; };
  return has_stage(one) == has_stage(other) && one.stage.findings_bytes == other.stage.findings_bytes &&
         one.stage.state_bytes == other.stage.state_bytes;
}

}  // namespace penstock::process
