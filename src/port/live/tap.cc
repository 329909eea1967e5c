// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0
//
// A TAP interface (Documentation/networking/tuntap) with a queue for each worker. A frame that the system sends to the
// interface is read into a buffer, with what is left to do (offload.h), and goes through the intake. Frames are copied:
// a TAP device has no memory to share.

#include "port/live/tap.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <pwd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "port/live/exchange.h"
#include "port/live/fits_link.h"
#include "port/live/intake.h"
#include "port/live/interface.h"
#include "port/live/namespace_thread.h"
#include "port/live/realtime_offset.h"
#include "port/live/rest.h"
#include "port/live/steering.h"

namespace penstock::port {

namespace {

constexpr std::array kParameters{
    Parameter{"interface", ParameterType::text, "", "",
              "the interface's name; it is created, and ends with the run, unless it exists", true},
    Parameter{"netns", ParameterType::text, "", "", "its network namespace, by the name of `ip netns`"},
    Parameter{"owner", ParameterType::text, "", "",
              "user who may attach to the interface without CAP_NET_ADMIN; the interface then stays after the run"},
    Parameter{"mtu", ParameterType::integer, "", "68..65521", "set its MTU; default: as it is, and 1500 for a new one"},
    Parameter{"up", ParameterType::flag, "true", "", "set it up"},
    Parameter{"offloads", ParameterType::flag, "true", "",
              "let the system leave checksums and segmentation to the port, which is faster for local connections"},
};

struct Settings {
  std::string interface, netns, owner;
  Place place, owner_place;
  std::optional<std::uint32_t> mtu;
  bool up = true, offloads = true;
};

/// The longest frame that the system sends to a TAP device: 64 KiB of IP, with a header and tags.
constexpr std::size_t kLongestFrame = 65536 + 64;

class TapQueue final : public RxQueue, public TxQueue {
 public:
  TapQueue(unsigned worker, PortIndex port, Exchange* exchange, const InterfaceWatch& watch)
      : worker_(worker),
        port_(port),
        exchange_(exchange),
        watch_(watch),
        intake_(worker, port, exchange),
        buffer_(kLongestFrame) {}

  RxStatus poll(Batch& batch) noexcept override {
    const RxStatus status = exchange_ == nullptr
                                ? receive(batch)
                                : exchange_->poll_in_turns(worker_, batch, port_, [&] { return receive(batch); });
    rest_.note(!is_open_);
    return status;
  }

  bool add_wake_ups(std::vector<pollfd>& to) noexcept override {
    if (exchange_ != nullptr) to.push_back({exchange_->wait_fd(worker_), POLLIN, 0});
    if (!rest_.add_wake_ups(to)) return false;
    // A deleted interface is readable for ever; then the time limit of the worker's sleep has to do.
    if (!rest_.asked() && !gone_.load(std::memory_order_relaxed)) to.push_back({device_.get(), POLLIN, 0});
    return true;
  }

  /// Another process takes over: see Port.
  [[nodiscard]] Rest& rest() noexcept { return rest_; }
  [[nodiscard]] FileDescriptor duplicate() const noexcept { return device_.duplicate(); }
  /// Before the first poll.
  void open(FileDescriptor device) noexcept { device_ = std::move(device); }

  Discarded discard(std::size_t most) noexcept override {
    Discarded all;
    if (exchange_ != nullptr) all = exchange_->discard(worker_, most);
    while (all.packets < most && read_frame()) {
      const Discarded left = intake_.give_up(frame_);
      all.packets += left.packets;
      all.bytes += left.bytes;
      is_open_ = false;
    }
    all.status = all.packets >= most ? RxStatus::more : RxStatus::idle;
    return all;
  }

  std::size_t send(std::span<const PacketView> packets) noexcept override {
    std::size_t accepted = 0;
    for (const PacketView& view : packets) {
      if (write_frame(view)) {
        ++accepted;
      } else {
        view.packet->verdict = Verdict::drop(0);
      }
    }
    return accepted;
  }

  struct Counts {
    Counter down, too_long, full, read_errors;
  };
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }
  [[nodiscard]] const Intake::Counts& intake() const noexcept { return intake_.counts(); }
  /// The interface does not exist any more.
  [[nodiscard]] bool gone() const noexcept { return gone_.load(std::memory_order_relaxed); }

 private:
  RxStatus receive(Batch& batch) noexcept {
    while (read_frame()) {
      if (intake_.take(batch, frame_) == Intake::Taken::full) return RxStatus::more;
      is_open_ = false;
    }
    return RxStatus::idle;
  }

  /// Reads the next frame, unless there is one that has not been taken completely.
  bool read_frame() noexcept {
    if (is_open_) return true;
    if (rest_.asked() || gone()) return false;
    VirtioHeader header;
    std::array<iovec, 2> parts{{{&header, sizeof header}, {buffer_.data(), buffer_.size()}}};
    const ssize_t count = ::readv(device_.get(), parts.data(), parts.size());
    if (count < 0) {
      // EIO: the interface is down, and will be up again. EBADFD: it has been deleted.
      if (errno == EBADFD) gone_.store(true, std::memory_order_relaxed);
      if (errno != EAGAIN && errno != EINTR && errno != EIO && errno != EBADFD) counts_.read_errors.add(1);
      return false;
    }
    const auto length = static_cast<std::size_t>(count);
    if (length < sizeof header + sizeof(EthernetHeader)) return false;
    frame_ = {};
    frame_.bytes = {buffer_.data(), length - sizeof header};
    frame_.wire_length = static_cast<std::uint32_t>(frame_.bytes.size());
    frame_.offload = header;
    frame_.timestamp_ns = system_time_ns();
    is_open_ = true;
    return true;
  }

  bool write_frame(const PacketView& view) noexcept {
    const std::size_t length = view.length();
    // It may have been moved to another namespace, where its state is not known.
    const bool known = watch_.exists();
    if ((known && !watch_.can_send()) || gone()) {
      counts_.down.add(1);
      return false;
    }
    if (!fits_link(view, known ? watch_.mtu() : kLongestFrame)) {
      counts_.too_long.add(1);
      return false;
    }
    VirtioHeader complete;
    std::array<iovec, 2> parts{{{&complete, sizeof complete}, {view.frame, length}}};
    if (::writev(device_.get(), parts.data(), parts.size()) >= 0) return true;
    (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? counts_.full : counts_.down).add(1);
    if (errno == EBADFD) gone_.store(true, std::memory_order_relaxed);
    return false;
  }

  const unsigned worker_;
  const PortIndex port_;
  Exchange* const exchange_;
  FileDescriptor device_;
  const InterfaceWatch& watch_;
  Intake intake_;
  std::vector<std::uint8_t> buffer_;
  ReceivedFrame frame_;   // in the buffer, if
  bool is_open_ = false;  // it has not been taken completely
  Rest rest_;
  std::atomic<bool> gone_{false};
  Counts counts_;
};

tl::unexpected<Errors> refused(const Settings& settings, std::string_view what) {
  const int error = errno;
  Error message = system_error(settings.interface, what, std::system_category().message(error));
  message.place = settings.place;
  if (error == EPERM || error == EACCES)
    message.expected = how_to_get(Capability::net_admin) + ", or an interface that belongs to this user (owner)";
  if (error == ENOENT) message.expected = "the kernel module tun (modprobe tun)";
  if (error == EBUSY || error == EINVAL)
    message.expected =
        "a TAP interface with several queues that no other program uses (ip tuntap add … mode tap multi_queue)";
  return failure(std::move(message));
}

class TapPort final : public Port {
 public:
  TapPort(Settings settings, PortIndex index)
      : settings_(std::move(settings)), index_(index), watch_(settings_.interface) {}

  bool reads() const noexcept override { return true; }
  bool writes() const noexcept override { return true; }
  bool lossless() const noexcept override { return false; }

  Errors check() const override {
    if (::access("/dev/net/tun", R_OK | W_OK) != 0) {
      Error error = system_error("/dev/net/tun", "cannot use TAP interfaces", std::system_category().message(errno));
      error.expected = errno == ENOENT ? "the kernel module tun (modprobe tun)" : "access to this device";
      return {std::move(error)};
    }
    if (!settings_.owner.empty() && !user_id(settings_.owner)) return {no_such_user()};
    return {};
  }

  Result<void> open(const Opening& opening) override {
    return in_network_namespace(settings_.netns, [&]() -> Result<void> { return open_here(opening); });
  }

  std::optional<CapabilityNeeds> capabilities() const override {
    CapabilityNeeds needs{{Capability::net_admin, Capability::bpf}, {}};
    if (!settings_.netns.empty()) needs.to_open.push_back(Capability::sys_admin);
    return needs;
  }

  RxQueue* rx(unsigned worker) noexcept override { return worker < queues_.size() ? queues_[worker].get() : nullptr; }
  TxQueue* tx(unsigned worker) noexcept override { return worker < queues_.size() ? queues_[worker].get() : nullptr; }

  /// The run cannot go on without the interface: it is a part of this process.
  bool failed() const noexcept override {
    return std::ranges::any_of(queues_, [](const auto& queue) { return queue->gone(); });
  }
  Errors close() override {
    if (!failed()) return {};
    return {{settings_.place, "the interface was deleted during the run", in_quotes(settings_.interface), ""}};
  }

  Result<std::string> continuity() const override {
    return fmt::format("tap interface={} netns={} offloads={}", settings_.interface, settings_.netns,
                       settings_.offloads);
  }
  void rest() noexcept override {
    for (const auto& queue : queues_) queue->rest().ask();
  }
  void resume() noexcept override {
    for (const auto& queue : queues_) queue->rest().end();
  }
  bool rests() const noexcept override {
    return std::ranges::all_of(queues_, [](const auto& queue) { return queue->rest().rests(); }) &&
           (!exchange_ || exchange_->is_empty());
  }
  /// A descriptor for each queue.
  HandedPort hand_over() override {
    HandedPort handed;
    for (const auto& queue : queues_) handed.descriptors.push_back(queue->duplicate());
    return handed;
  }
  Result<void> continue_from(HandedPort handed) override {
    if (handed.is_empty()) return in_network_namespace(settings_.netns, [&] { return begin_anew(); });
    if (handed.descriptors.size() != queues_.size() || !handed.numbers.empty())
      return failure(Error{settings_.place, "not what a port of this kind hands over", "", ""});
    for (std::size_t w = 0; w < queues_.size(); ++w) queues_[w]->open(std::move(handed.descriptors[w]));
    return {};
  }

  std::optional<FragmentCounts> fragments() const noexcept override {
    if (!exchange_) return std::nullopt;
    return exchange_->counts().fragments;
  }

  std::optional<LinkState> link() const noexcept override { return watch_.link(); }
  std::optional<std::uint32_t> mtu() const noexcept override { return watch_.mtu(); }
  std::optional<InterfaceCounts> interface_counts() const override {
    InterfaceCounts counts;
    Intake::Sums sums;
    std::uint64_t down = 0, long_sent = 0, full = 0, read_errors = 0;
    for (const auto& queue : queues_) {
      sums.add(queue->intake());
      down += queue->counts().down.get();
      long_sent += queue->counts().too_long.get();
      full += queue->counts().full.get();
      read_errors += queue->counts().read_errors.get();
    }
    counts.lost = {{"malformed_offload", sums.malformed}, {"too_long", sums.too_long}};
    counts.events = {{"checksums_completed", sums.checksums},
                     {"frames_split", sums.split},
                     {"segments", sums.segments},
                     {"refused_down", down},
                     {"refused_too_long", long_sent},
                     {"refused_full", full},
                     {"read_errors", read_errors}};
    if (exchange_) {
      const Exchange::Counts exchange = exchange_->counts();
      exchange.add_to(counts);
      counts.lost.emplace_back("left_at_the_end", exchange.left);
    }
    for (auto& event : watch_.events()) counts.events.push_back(std::move(event));
    return counts;
  }

 private:
  [[nodiscard]] static std::optional<uid_t> user_id(const std::string& name) {
    passwd entry{};
    passwd* found = nullptr;
    std::array<char, 4096> text;
    if (::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found) != 0 || found == nullptr)
      return std::nullopt;
    return found->pw_uid;
  }
  [[nodiscard]] Error no_such_user() const {
    return {settings_.owner_place, "owner: there is no such user", in_quotes(settings_.owner), ""};
  }

  Result<void> open_here(const Opening& opening) {
    if (opening.workers > 1) {
      exchange_ = std::make_unique<Exchange>(opening.workers);
      program_ = load_steering_program(opening.workers);
    }
    for (unsigned w = 0; w < opening.workers; ++w)
      queues_.push_back(std::make_unique<TapQueue>(w, index_, exchange_.get(), watch_));
    if (!opening.continues) {
      if (auto begun = begin_anew(); !begun) return begun;
    }
    return watch_.start();
  }

  Result<void> begin_anew() {
    for (const auto& queue : queues_) {
      auto device = open_queue(queues_.size() > 1);
      if (!device) return failure(std::move(device.error()));
      if (queue == queues_.front()) {
        if (auto configured = configure(*device); !configured) return configured;
      }
      queue->open(std::move(*device));
    }
    return {};
  }

  Result<FileDescriptor> open_queue(bool several) const {
    FileDescriptor device(::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (!device) return refused(settings_, "cannot open /dev/net/tun");
    ifreq request{};
    settings_.interface.copy(request.ifr_name, IFNAMSIZ - 1);
    request.ifr_flags = static_cast<short>(IFF_TAP | IFF_NO_PI | IFF_VNET_HDR | (several ? IFF_MULTI_QUEUE : 0));
    if (::ioctl(device.get(), TUNSETIFF, &request) != 0) {
      // An interface with several queues can also be used with one.
      request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_MULTI_QUEUE);
      if (several || ::ioctl(device.get(), TUNSETIFF, &request) != 0)
        return refused(settings_, "cannot create the interface or attach to it");
    }
    const int header_bytes = sizeof(VirtioHeader);
    const unsigned offloads = settings_.offloads ? TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN : 0;
    if (::ioctl(device.get(), TUNSETVNETHDRSZ, &header_bytes) != 0 ||
        ::ioctl(device.get(), TUNSETOFFLOAD, offloads) != 0) {
      return refused(settings_, "cannot set the interface's offloads");
    }
    return device;
  }

  Result<void> configure(const FileDescriptor& device) {
    if (program_) {
      int program = program_.get();
      // Without it, the system spreads frames by a hash of its own.
      if (::ioctl(device.get(), TUNSETSTEERINGEBPF, &program) != 0) program_ = {};
    }
    if (!settings_.owner.empty()) {
      const auto user = user_id(settings_.owner);
      if (!user) return failure(no_such_user());
      if (::ioctl(device.get(), TUNSETOWNER, *user) != 0 || ::ioctl(device.get(), TUNSETPERSIST, 1) != 0)
        return refused(settings_, "cannot give the interface to its owner");
    }
    const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    settings_.interface.copy(request.ifr_name, IFNAMSIZ - 1);
    if (settings_.mtu) {
      request.ifr_mtu = static_cast<int>(*settings_.mtu);
      if (::ioctl(socket.get(), SIOCSIFMTU, &request) != 0) return refused(settings_, "cannot set the MTU");
    }
    if (!settings_.up) return {};
    if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0)
      return refused(settings_, "cannot read the interface's state");
    if ((request.ifr_flags & IFF_UP) != 0) return {};
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) return refused(settings_, "cannot set the interface up");
    return {};
  }

  const Settings settings_;
  const PortIndex index_;
  FileDescriptor program_;
  std::unique_ptr<Exchange> exchange_;
  InterfaceWatch watch_;
  std::vector<std::unique_ptr<TapQueue>> queues_;
};

Result<std::unique_ptr<Port>> make(const Parameters& given, PortIndex index) {
  Settings settings;
  settings.interface = given.text("interface");
  settings.place = given.place("interface");
  if (settings.interface.empty() || settings.interface.size() >= IFNAMSIZ ||
      settings.interface.find_first_of("/% \t") != std::string::npos) {
    return failure({settings.place, "interface: not a name for an interface", in_quotes(settings.interface),
                    "1 to 15 characters, without spaces, '/' and '%'"});
  }
  if (given.has("netns")) settings.netns = given.text("netns");
  if (given.has("owner")) {
    settings.owner = given.text("owner");
    settings.owner_place = given.place("owner");
  }
  if (given.has("mtu")) settings.mtu = static_cast<std::uint32_t>(given.integer("mtu"));
  settings.up = given.flag("up");
  settings.offloads = given.flag("offloads");
  return std::make_unique<TapPort>(std::move(settings), index);
}

}  // namespace

PortKind tap_kind() noexcept {
  return {"tap", "a TAP interface, created or attached to, whose packets this process receives and sends", kParameters,
          make};
}

}  // namespace penstock::port
