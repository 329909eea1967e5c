// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "control/hand_over.h"

#include <fmt/format.h>
#include <poll.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "base/text_file.h"
#include "control/unix_socket.h"

namespace penstock::control {

namespace {

using port::FileDescriptor;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kReady = "ready\n", kYours = "yours\n";
/// The kernel passes no more at once (SCM_MAX_FD).
constexpr std::size_t kMostDescriptors = 253;
/// While the successor maps the ports, and packets wait.
constexpr std::chrono::seconds kLongestWait{5};
/// Longer than the predecessor takes for anything.
constexpr std::chrono::seconds kLongestReply{15};

Error problem(std::string message, std::string found = "", std::string expected = "") {
  return {{}, std::move(message), std::move(found), std::move(expected)};
}

/// Its number if it has no name.
std::string name_of_user(uid_t user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> text;
  if (::getpwuid_r(user, &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
    return std::to_string(user);
  return found->pw_name;
}

std::string system_text(int error) { return std::system_category().message(error); }

/// False: not before `end`, or the other end has gone, which `recv` and `send` then say.
bool wait_for(int socket, short events, Clock::time_point end) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd polled{socket, events, 0};
    const int count = ::poll(&polled, 1, static_cast<int>(left.count()));
    if (count > 0) return true;
    if (count == 0 || errno != EINTR) return false;
  }
}

/// With descriptors, which come with the first byte. Returns errno, or 0.
int send_all(int socket, std::string_view text, const std::vector<int>& descriptors, Clock::time_point end) {
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control{};
  bool first = true;
  while (!text.empty()) {
    if (!wait_for(socket, POLLOUT, end)) return ETIMEDOUT;
    iovec part{const_cast<char*>(text.data()), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (first && !descriptors.empty()) {
      const std::size_t bytes = descriptors.size() * sizeof(int);
      message.msg_control = control.data();
      message.msg_controllen = CMSG_SPACE(bytes);
      cmsghdr* const header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(bytes);
      std::memcpy(CMSG_DATA(header), descriptors.data(), bytes);
    }
    const ssize_t count = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return errno;
    first = false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

/// A line with its end, or what came of it: until `end`, or until the other end has gone.
std::string receive_line(int socket, std::vector<FileDescriptor>* descriptors, Clock::time_point end) {
  constexpr std::size_t kLongest = std::size_t{1} << 20;
  std::string line;
  while (line.size() < kLongest && (line.empty() || line.back() != '\n') && wait_for(socket, POLLIN, end)) {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))> control;
    std::array<char, 4096> bytes;
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = descriptors == nullptr ? 0 : control.size();
    const ssize_t count = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) break;
    for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
      if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
      for (std::size_t at = 0; at + sizeof(int) <= header->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header) + at, sizeof fd);
        descriptors->emplace_back(fd);
      }
    }
    line.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return line;
}

/// Whether the successor is ready. If not in time, it cannot be any more: its next message does not arrive.
bool is_ready(int socket) {
  std::string line = receive_line(socket, nullptr, Clock::now() + kLongestWait);
  if (line == kReady) return true;
  ::shutdown(socket, SHUT_RD);
  return line + receive_line(socket, nullptr, Clock::now() + kLongestWait) == kReady;
}

/// What differs in two continuities, "KIND KEY=VALUE …", word by word: that of the one, and of the other. "": it lacks
/// the key.
std::vector<std::pair<std::string, std::string>> differences(std::string_view one, std::string_view other) {
  std::map<std::string_view, std::string_view> of_one, of_other;  // the words by their keys
  const auto add = [](std::string_view text, auto& to) {
    for (const std::string_view word : split(text, ' ')) to[word.substr(0, word.find('='))] = word;
  };
  const auto kind = [](std::string_view text) { return text.substr(0, text.find(' ')); };
  if (kind(one) != kind(other)) return {{std::string(kind(one)), std::string(kind(other))}};
  add(one, of_one);
  add(other, of_other);
  std::vector<std::pair<std::string, std::string>> found;
  for (const auto& word : of_one) {
    const auto there = of_other.find(word.first);
    const std::string_view text = there == of_other.end() ? std::string_view() : there->second;
    if (text != word.second) found.emplace_back(word.second, text);
  }
  for (const auto& word : of_other) {
    if (!of_one.contains(word.first)) found.emplace_back("", word.second);
  }
  // Such as the same words in another order.
  if (found.empty() && one != other) found.emplace_back(one, other);
  return found;
}

std::string one_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

Json to_json(const run::Continuity& continuity) {
  Json ports = Json::object();
  for (const auto& port : continuity.ports) ports[port.first] = port.second;
  return {{"format", kHandOverFormat}, {"workers", continuity.workers}, {"ports", std::move(ports)}};
}

Json to_json(const run::HandedPorts& ports) {
  Json all = Json::object();
  for (const auto& port : ports)
    all[port.first] = {{"descriptors", port.second.descriptors.size()}, {"numbers", port.second.numbers}};
  return {{"ports", std::move(all)}};
}

Result<run::HandedPorts> read_handed(const Json& result, std::vector<FileDescriptor> descriptors) {
  const auto wrong = [&] {
    return failure(problem("not what a run hands over", in_quotes(one_line(result).substr(0, 200)), "its ports"));
  };
  if (!result.is_object() || !result.contains("ports") || !result["ports"].is_object()) return wrong();
  run::HandedPorts ports;
  std::size_t next = 0;
  for (const auto& item : result["ports"].items()) {
    const Json& port = item.value();
    if (!port.is_object() || !port.contains("descriptors") || !port["descriptors"].is_number_unsigned() ||
        !port.contains("numbers") || !port["numbers"].is_array())
      return wrong();
    run::HandedPorts::mapped_type handed;
    const auto count = port["descriptors"].get<std::uint64_t>();
    if (count > descriptors.size() - next) return wrong();
    for (std::uint64_t i = 0; i < count; ++i) handed.descriptors.push_back(std::move(descriptors[next++]));
    for (const Json& number : port["numbers"]) {
      if (!number.is_number_unsigned()) return wrong();
      handed.numbers.push_back(number.get<std::uint64_t>());
    }
    ports.emplace(item.key(), std::move(handed));
  }
  if (next != descriptors.size()) return wrong();
  return ports;
}

HandOverOutcome hand_over(run::Run& run, const FileDescriptor& socket, const Json& id,
                          const std::function<void(pid_t successor)>& leaves) {
  HandOverOutcome outcome;
  if (const auto peer = peer_of(socket.get())) outcome.successor = peer->pid;
  auto handed = run.rest();
  if (!handed) {
    outcome.errors = std::move(handed.error());
    return outcome;
  }
  std::vector<int> descriptors;
  for (const auto& port : *handed) {
    for (const FileDescriptor& descriptor : port.second.descriptors) descriptors.push_back(descriptor.get());
  }
  const auto fail = [&](Error error) {
    run.resume();
    outcome.errors.push_back(std::move(error));
    return outcome;
  };
  if (descriptors.size() > kMostDescriptors) {
    return fail(problem("the ports have too many sockets to be handed over", std::to_string(descriptors.size()),
                        fmt::format("at most {}", kMostDescriptors)));
  }
  if (std::ranges::any_of(descriptors, [](int descriptor) { return descriptor < 0; }))
    return fail(problem("cannot duplicate a descriptor", "", "a higher limit (ulimit -n)"));
  if (const int error =
          send_all(socket.get(), result_text(id, to_json(*handed)), descriptors, Clock::now() + kLongestWait);
      error != 0)
    return fail(problem("cannot send the ports to the other process", system_text(error)));
  if (!is_ready(socket.get()))
    return fail(
        problem("the other process did not take over", "", fmt::format("\"ready\" within {} s", kLongestWait.count())));
  run.leave();
  leaves(outcome.successor);
  static_cast<void>(send_all(socket.get(), kYours, {}, Clock::now() + kLongestWait));  // it may do without
  return outcome;
}

RunningProcess::Connected RunningProcess::connect(const std::string& path, const run::Continuity& own) {
  const auto no_process = [](std::string_view kind, Errors errors) {
    return tl::unexpected(NoResult{std::string(kind), std::move(errors)});
  };
  auto client = Client::connect(path);
  if (!client) return no_process("", std::move(client.error()));
  const auto peer = peer_of(client->fd());
  if (!peer) return no_process("", {{{path, 0, 0}, "cannot tell whose run it is", "", "a process on this machine"}});
  if (peer->uid != 0 && peer->uid != ::geteuid()) {
    const std::string owner = name_of_user(peer->uid);
    return no_process(name(Failure::refused),
                      {{{path, 0, 0},
                        fmt::format("the run belongs to user {}: start the new one as that user", owner),
                        "user " + name_of_user(::geteuid()),
                        "user " + owner}});
  }
  FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, peer->pid, 0)));
  const int error = process ? 0 : errno;
  std::unique_ptr<RunningProcess> running(new RunningProcess(path, std::move(*client), peer->pid, std::move(process)));
  running->has_died_ = error == ESRCH;
  if (running->has_died_) return running;
  if (error != 0) return no_process("", {system_error(path, "cannot watch the other process", system_text(error))});
  auto answer = running->client_.ask(Command::hand_over, {{"dry_run", true}}, kLongestReply);
  if (!answer && answer.error().kind.empty()) {
    running->has_died_ = running->has_ended();
    if (running->has_died_) return running;
    answer.error().errors.front().expected += running->way_out();
  }
  if (!answer) {
    const bool cannot = answer.error().kind == name(Failure::failed);
    return no_process(cannot ? name(Failure::mistakes) : std::string_view(answer.error().kind),
                      std::move(answer.error().errors));
  }
  // The client may have connected again.
  if (const auto now = peer_of(running->client_.fd()); !now || now->pid != peer->pid)
    return no_process("", {{{path, 0, 0}, "another process listens now", "", fmt::format("process {}", peer->pid)}});
  if (auto same = running->compare(own, *answer); !same)
    return no_process(name(Failure::mistakes), std::move(same.error()));
  return running;
}

RunningProcess::Connected RunningProcess::connect(const std::string& path, const run::Chain& chain) {
  const auto own = run::continuity_of(chain);
  if (!own) return tl::unexpected(NoResult{std::string(name(Failure::mistakes)), own.error()});
  return connect(path, *own);
}

Result<void> RunningProcess::compare(const run::Continuity& own, const Json& found) const {
  const Json wanted = to_json(own);
  Errors errors;
  const auto add = [&](std::string what, std::string theirs, std::string ours) {
    errors.push_back({{path_, 0, 0}, std::move(what), std::move(theirs), std::move(ours)});
  };
  const auto differs = [&](const std::string& what, std::string_view theirs, std::string_view ours) {
    add(what + " of the running process differs", theirs.empty() ? "" : in_quotes(theirs),
        fmt::format("{}, as here", ours.empty() ? "none" : ours));
  };
  const auto member = [](const Json& object, const std::string& key) {
    return object.is_object() && object.contains(key) ? object[key] : Json();
  };
  if (const Json format = member(found, "format"); format != wanted["format"]) {
    differs("the format of what is handed over", one_line(format), one_line(wanted["format"]));
    return failure(std::move(errors));
  }
  if (const Json workers = member(found, "workers"); workers != wanted["workers"])
    differs("the number of workers", one_line(workers), one_line(wanted["workers"]));
  const Json ports = member(found, "ports");
  for (const auto& port : own.ports) {
    const Json theirs = member(ports, port.first);
    if (!theirs.is_string()) {
      add("the running process has no port " + port.first, "", "the same ports");
      continue;
    }
    for (const auto& [there, here] : differences(theirs.get_ref<const std::string&>(), port.second))
      differs("port " + port.first, there, here);
  }
  if (ports.is_object()) {
    for (const auto& port : ports.items()) {
      if (!wanted["ports"].contains(port.key()))
        add("only the running process has port " + port.key(), "", "the same ports");
    }
  }
  if (!errors.empty()) return failure(std::move(errors));
  return {};
}

Result<run::HandedPorts> RunningProcess::take() {
  taken_ = Clock::now();
  if (has_died_) return run::HandedPorts();
  auto ports = ask_for_ports();
  goes_on_ = !ports;
  return ports;
}

Result<run::HandedPorts> RunningProcess::ask_for_ports() {
  const Clock::time_point end = taken_ + kLongestReply;
  const int socket = client_.fd();
  std::vector<FileDescriptor> descriptors;
  std::string line;
  if (send_all(socket, request_text({0, Command::hand_over, Json::object()}), {}, end) == 0)
    line = receive_line(socket, &descriptors, end);
  const Json answer = Json::parse(line, nullptr, false);
  if (!answer.is_object() || !answer.contains("ok")) {
    has_died_ = has_ended();
    if (has_died_) return run::HandedPorts();
    return failure(Error{{path_, 0, 0},
                         fmt::format("process {} did not hand over its ports", pid_),
                         line.empty() ? "" : in_quotes(line),
                         fmt::format("an answer within {} s{}", kLongestReply.count(), way_out())});
  }
  if (answer["ok"] == true && answer.contains("result")) return read_handed(answer["result"], std::move(descriptors));
  return failure(answer.contains("error") ? errors_of(answer["error"])
                                          : Errors{{{path_, 0, 0}, "the other process did not hand over", "", ""}});
}

Result<void> RunningProcess::confirm() {
  const int socket = client_.fd();
  const Clock::time_point end = Clock::now() + kLongestReply;
  const int error = send_all(socket, kReady, {}, end);
  // What comes before it is about why the other process goes on.
  const std::string line = receive_line(socket, nullptr, end);
  confirmed_ = Clock::now();
  if (line == kYours || has_ended()) return {};
  goes_on_ = true;
  return failure(Error{{path_, 0, 0},
                       "the other process goes on",
                       error != 0 ? system_text(error) : in_quotes(line.substr(0, 200)),
                       "\"yours\""});
}

std::string RunningProcess::way_out() const {
  return fmt::format("; or else end process {}, then start without --take-over", pid_);
}

bool RunningProcess::has_ended() const noexcept {
  if (has_died_) return true;
  pollfd polled{process_.get(), POLLIN, 0};
  constexpr int kMoment = 1000;
  return ::poll(&polled, 1, kMoment) > 0;
}

}  // namespace penstock::control
