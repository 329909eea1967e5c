// SPDX-FileCopyrightText: 2026 The Penstock Authors
// SPDX-License-Identifier: Apache-2.0

#include "proxy/tenant.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

#include "base/least_limit.h"
#include "base/log.h"
#include "base/shared_memory.h"
#include "base/units.h"
#include "function/recipe_tables.h"
#include "gpu/cuda_error.h"
#include "ipc/foreign_descriptor.h"
#include "proxy/problem.h"
#include "proxy/shape_message.h"

namespace penstock::proxy {

namespace {

constexpr std::chrono::seconds kLongestSend{5};
constexpr std::chrono::seconds kLongestSilence{5};
constexpr std::size_t kMostStagesOfTenant = 4096;
constexpr std::size_t kMostTablesOfTenant = 1024;
constexpr std::uint32_t kThreadsOfUnit = 4;      // for lanes, for each sixteenth of the device
constexpr std::size_t kMostLanesOfTenant = 256;  // each has descriptors, of which the process has not many
constexpr std::uint64_t kMostRecipeBytes = std::uint64_t{8} << 30;

/// A copy, if the message has exactly this size.
template <typename Message>
std::optional<Message> as(const Received& received) {
  if (received.bytes.size() != sizeof(Message)) return std::nullopt;
  Message message;
  std::memcpy(static_cast<void*>(&message), received.bytes.data(), sizeof message);
  return message;
}

/// Reads a part of a file; never through a mapping, so that it cannot change any more.
bool read_part(int file, std::uint64_t at, std::vector<std::byte>& to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t count = ::pread(file, to.data() + done, to.size() - done, static_cast<off_t>(at + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

/// Adds its lifetime to a part of the time to attach, unless the tenant is there already.
class PartOfAttach {
 public:
  PartOfAttach(const TenantCounters& counters, std::atomic<std::uint64_t>& part)
      : part_(part), counts_(counters.attach_ns.load() == 0) {}
  PartOfAttach(const PartOfAttach&) = delete;
  PartOfAttach& operator=(const PartOfAttach&) = delete;
  ~PartOfAttach() {
    if (counts_) part_.fetch_add(static_cast<std::uint64_t>((Arbiter::now() - begun_).count()));
  }

 private:
  std::atomic<std::uint64_t>& part_;
  const bool counts_;
  const Scheduler::Time begun_ = Arbiter::now();
};

}  // namespace

Tenant::Tenant(FileDescriptor socket, const Peer& peer, const Backend& backend, Arbiter& arbiter, TableGrants& grants,
               Admission& admission)
    : socket_(std::move(socket)), peer_(peer), grants_(grants), admission_(admission), state_(backend, arbiter) {}

Tenant::~Tenant() {
  const auto begun = Arbiter::now();
  // Lanes first, then the stages, then the tables, then the memory. Only then may others have the share.
  threads_.clear();
  state_.stages.clear();
  for (const auto& [id, tables] : tables_) end_grant(tables);
  tables_.clear();
  // Lanes of others give back their stages of these tables when no batch uses them, without any help of their tenants.
  state_.tables->wait_for_none();
  for (std::uint32_t id = 0; id < kMostMemories; ++id) state_.remove_memory(id);
  state_.part.reset();
  if (admitted_) admission_.leave(state_, releasing_ + (Arbiter::now() - begun));
  ipc::close_foreign(std::move(socket_));
}

void Tenant::interrupt() noexcept { ::shutdown(socket_.get(), SHUT_RDWR); }

std::string Tenant::serve() {
  constexpr std::chrono::milliseconds kLook{50};  // whether a thread of the tenant has ended it
  // Connections are few: nobody can keep them all without being a tenant.
  const auto hello_until = std::chrono::steady_clock::now() + kLongestSilence;
  try {
    state_.backend.select();
    for (;;) {
      auto message = receive_message(socket_.get(), kMostMessageBytes, kLook);
      if (state_.ends()) return state_.why();
      if (!admitted_ && std::chrono::steady_clock::now() > hello_until) return "no hello";
      if (!message && errno == ETIMEDOUT) continue;
      if (!message) return errno == EMSGSIZE ? "a message of a wrong size" : "";
      if (std::string wrong = handle(std::move(*message)); !wrong.empty()) return wrong;
    }
  } catch (const std::exception& error) {  // nothing of this tenant ends the proxy
    return error.what();
  }
}

std::string Tenant::handle(Received message) {
  MessageType type{};
  if (message.bytes.size() < sizeof type) return "a message without a type";
  std::memcpy(&type, message.bytes.data(), sizeof type);
  const auto with = [&]<typename Message>(std::type_identity<Message>, auto work) -> std::string {
    const auto copy = as<Message>(message);
    if (!copy) return fmt::format("a message of a wrong size: type {}", static_cast<std::uint32_t>(type));
    if (!admitted_ && type != MessageType::hello && type != MessageType::status && type != MessageType::set_policy)
      return "a request before hello";
    if constexpr (std::is_same_v<decltype(work(*copy)), std::string>) {
      return work(*copy);
    } else {
      if constexpr (!std::is_same_v<Message, Release>) releasing_ = {};
      work(*copy);
      return {};
    }
  };
  switch (type) {
    case MessageType::hello:
      return with(std::type_identity<Hello>(), [&](const Hello& hello) { return answer(hello); });
    case MessageType::status:
      return with(std::type_identity<StatusRequest>(), [&](const StatusRequest& request) { return answer(request); });
    case MessageType::set_policy:
      return with(std::type_identity<SetPolicy>(), [&](const SetPolicy& request) { answer(request); });
    case MessageType::open_memory:
      return with(std::type_identity<OpenMemory>(), [&](const OpenMemory& request) { answer(request, message); });
    case MessageType::load_tables:
      return with(std::type_identity<LoadTables>(), [&](const LoadTables& request) { answer(request, message); });
    case MessageType::grant_tables:
      return with(std::type_identity<GrantTables>(), [&](const GrantTables& request) { answer(request); });
    case MessageType::use_grant:
      return with(std::type_identity<UseGrant>(), [&](const UseGrant& request) { answer(request); });
    case MessageType::make_stage:
      return with(std::type_identity<MakeStage>(), [&](const MakeStage& request) { answer(request); });
    case MessageType::make_lane:
      return with(std::type_identity<MakeLane>(), [&](const MakeLane& request) { answer(request); });
    case MessageType::close_memory:
    case MessageType::unload_tables:
    case MessageType::drop_stage:
    case MessageType::end_lane:
      return with(std::type_identity<Release>(), [&](const Release& release) { handle(release); });
  }
  return fmt::format("a message of an unknown type: {}", static_cast<std::uint32_t>(type));
}

std::string Tenant::answer(const Hello& hello) {
  if (admitted_) return "a second hello";
  state_.hello_at = Arbiter::now();
  if (hello.version != kProtocolVersion) {
    Reply other_version =
        refusal(problem("the proxy speaks another protocol", fmt::format("version {}", hello.version),
                        fmt::format("version {}, as programs of the same release do", kProtocolVersion)));
    other_version.failed = Reply::kOtherVersion;
    send(other_version);
    return fmt::format("protocol version {}", hello.version);
  }
  auto quota = admission_.admit(hello, peer_, state_);
  if (!quota) {
    send(refusal(quota.error().front()));
    return {};
  }
  quota_ = *quota;
  admitted_ = true;
  Reply welcome;
  welcome.value = quota_.device_bytes;
  welcome.message = Text<320>(state_.backend.device());
  const int pulse = admission_.pulse_file();
  send(welcome, std::span(&pulse, 1));
  return {};
}

std::string Tenant::answer(const StatusRequest& request) {
  const std::string text = admission_.status(request.prometheus != 0).substr(0, kMostStatusBytes);
  return send_message(socket_.get(), std::as_bytes(std::span(text)), {}, kLongestSend) == 0 ? "" : "no status taken";
}

void Tenant::answer(const SetPolicy& request) {
  const auto set = [&]() -> Result<std::uint32_t> {
    if (peer_.uid != 0 && peer_.uid != ::geteuid())
      return failure(problem("the scheduler is changed by the proxy's user only", fmt::format("user {}", peer_.uid),
                             fmt::format("user {} or root", ::geteuid())));
    if (request.policy >= std::size(kPolicyNames)) return failure(problem("no such scheduler"));
    const Policy former = state_.arbiter.with([&](Scheduler& scheduler) {
      const Policy before = scheduler.policy();
      scheduler.set_policy(static_cast<Policy>(request.policy));
      return before;
    });
    if (const auto now = static_cast<Policy>(request.policy); now != former)
      log_info("the scheduler is {}, and was {}: set by process {} of user {}", kPolicyNames[request.policy],
               kPolicyNames[static_cast<std::size_t>(former)], peer_.pid, peer_.uid);
    return 0U;
  };
  reply(set());
}

void Tenant::answer(const OpenMemory& request, const Received& message) {
  const PartOfAttach part(state_.counters, state_.counters.attach_memory_ns);
  reply(message.descriptors.size() == 1
            ? open_memory(request, message.descriptors.front().get())
            : failure(problem("memory: wrong number of descriptors", std::to_string(message.descriptors.size()), "1")));
}

void Tenant::answer(const LoadTables& request, const Received& message) {
  const PartOfAttach part(state_.counters, state_.counters.attach_tables_ns);
  reply(message.descriptors.size() == 1
            ? load_tables(request, message.descriptors.front().get())
            : failure(problem("tables: wrong number of descriptors", std::to_string(message.descriptors.size()), "1")));
}

void Tenant::answer(const GrantTables& request) {
  const auto token = grant_tables(request.tables);
  if (!token) return reply(tl::unexpected(token.error()));
  Reply granted;
  granted.token = *token;
  send(granted);
}

void Tenant::answer(const UseGrant& request) { reply(use_grant(request)); }

void Tenant::answer(const MakeStage& request) {
  const PartOfAttach part(state_.counters, state_.counters.attach_lanes_ns);
  reply(make_stage(request));
}

void Tenant::answer(const MakeLane& request) {
  const PartOfAttach part(state_.counters, state_.counters.attach_lanes_ns);
  std::vector<int> files;
  const auto made = make_lane(request, files);
  reply(made, files);
}

void Tenant::handle(const Release& request) {
  const auto begun = Arbiter::now();
  give_back(request);
  releasing_ += Arbiter::now() - begun;
}

void Tenant::give_back(const Release& release) {
  switch (release.type) {
    case MessageType::close_memory: state_.remove_memory(release.id); break;
    case MessageType::unload_tables:
      if (const auto found = tables_.find(release.id); found != tables_.end()) {
        end_grant(found->second);
        tables_.erase(found);  // the tenant's own stages that use them keep them
      }
      break;
    case MessageType::drop_stage: state_.stages.drop(release.id); break;
    case MessageType::end_lane: {
      const auto found = lanes_.find(release.id);
      if (found == lanes_.end()) break;
      if (const auto lane = threads_[found->second.thread]->remove(release.id)) lane->give_up_results();
      state_.counters.device_bytes.fetch_sub(found->second.device_bytes);
      state_.counters.host_bytes.fetch_sub(found->second.host_bytes);
      lanes_.erase(found);
      break;
    }
    default: break;
  }
}

Result<void> Tenant::reserve(std::atomic<std::uint64_t>& used, std::uint64_t quota, std::uint64_t bytes,
                             std::string_view what) const {
  const std::uint64_t before = used.load();
  if (bytes > quota || before > quota - bytes) {
    return failure(problem(
        fmt::format("more {} than the tenant may have", what),
        fmt::format("{} more with {} in use", format_size(bytes), format_size(before)),
        &used == &state_.counters.host_bytes
            ? fmt::format("at most {} (`penstock proxy serve --host-memory`)", format_size(quota))
            : fmt::format("at most {} ({})", format_size(quota),
                          quota_.less_memory ? "`proxy_memory` of the run" : "profile " + quota_.profile.name())));
  }
  used.fetch_add(bytes);
  return {};
}

Result<std::uint32_t> Tenant::open_memory(const OpenMemory& request, int file) {
  state_.end_removed();
  const bool is_too_much = request.bytes > quota_.host_bytes;  // so there is no need to look at the file
  if (!is_too_much && (request.bytes == 0 || !is_sealed(file, request.bytes)))
    return failure(problem("memory: not a file that can be used", format_size(request.bytes),
                           "a memfd of that size, sealed against growing and shrinking"));
  const std::uint64_t bytes = is_too_much ? request.bytes : LaneLayout::pages(request.bytes);
  if (auto reserved = reserve(state_.counters.host_bytes, quota_.host_bytes, bytes, "host memory for the device");
      !reserved)
    return failure(std::move(reserved.error()));
  const auto give_up = [&](Error error) {
    state_.counters.host_bytes.fetch_sub(bytes);
    return failure(std::move(error));
  };
  try {
    auto memory = std::make_shared<TenantMemory>(file, request.bytes);
    // What is only read on the host need not be pinned.
    if (request.host_only == 0) memory->set_opening(state_.backend.open(memory->bytes()));
    memory->set_counter(state_.counters.host_bytes);
    const std::uint32_t id = state_.add_memory(std::move(memory));
    if (id == kMostMemories)
      return failure(problem("memory: too many are open", "", fmt::format("at most {}", kMostMemories)));
    return id;
  } catch (const std::bad_alloc&) {
    return give_up(problem("memory: cannot be mapped", std::system_category().message(errno), ""));
  } catch (const gpu::CudaError& error) {
    return give_up(problem("memory: the device cannot use it", error.what(), "memory that can be pinned"));
  }
}

Result<std::uint32_t> Tenant::load_tables(const LoadTables& request, int file) {
  const function::RemoteKernel* const kernel = state_.backend.kernel(request.kernel.view());
  if (kernel == nullptr)
    return failure(problem("tables: the proxy has no such kernel", in_quotes(request.kernel.view()),
                           "one of " + state_.backend.kernel_names()));
  const auto wrong = [&](std::string found, std::string expected) {
    return failure(problem(fmt::format("tables of {}", kernel->name), std::move(found), std::move(expected)));
  };
  const auto replaced = request.replaces == 0 ? tables_.end() : tables_.find(request.replaces);
  if (request.replaces != 0 && (replaced == tables_.end() || replaced->second.kernel != kernel))
    return wrong(fmt::format("in the place of {}", request.replaces), "the id of tables of this kernel");
  if (request.tables > kMostTables)
    return wrong(format_count(request.tables, "table"), fmt::format("at most {}", kMostTables));
  if (request.replaces == 0 && tables_.size() >= kMostTablesOfTenant)
    return wrong("too many", fmt::format("at most {}", kMostTablesOfTenant));
  std::uint64_t sum = request.argument_bytes;
  for (std::uint32_t t = 0; t < request.tables; ++t) {
    if (request.table_bytes[t] > kMostRecipeBytes)
      return wrong("a table that is too large", format_size(kMostRecipeBytes));
    sum += request.table_bytes[t];
  }
  // The copy on the host is bounded by what the tenant may have on the device.
  if (auto reserved = reserve(state_.counters.device_bytes, quota_.device_bytes, sum, "memory on the device");
      !reserved)
    return failure(std::move(reserved.error()));
  std::uint64_t reserved_bytes = sum;
  const auto give_up = [&](Errors errors) {
    state_.counters.device_bytes.fetch_sub(reserved_bytes);
    return failure(std::move(errors));
  };
  try {
    if (!is_sealed(file, sum))
      return give_up({problem("tables: not a file that can be used", "", "a sealed memfd with all of them")});
    function::StageRecipe recipe;
    recipe.kernel = kernel->name;
    recipe.arguments.resize(request.argument_bytes);
    bool read = read_part(file, 0, recipe.arguments);
    std::uint64_t at = request.argument_bytes;
    for (std::uint32_t t = 0; t < request.tables && read; ++t) {
      std::vector<std::byte> table(request.table_bytes[t]);
      read = read_part(file, at, table);
      at += request.table_bytes[t];
      recipe.tables.push_back(function::secret_table(std::move(table)));  // it may have keys
    }
    if (!read) return give_up({problem("tables: cannot be read", std::system_category().message(errno), "")});
    if (auto good = kernel->check(recipe); !good) return give_up(std::move(good.error()));
    if (auto room = reserve_for_load(*kernel, recipe, reserved_bytes); !room) return give_up(std::move(room.error()));
    if (replaced != tables_.end()) {
      if (auto done = replace_tables(replaced->second, recipe); !done) return give_up(std::move(done.error()));
      state_.counters.device_bytes.fetch_sub(reserved_bytes);
      return request.replaces;
    }
    auto loaded = kernel->load(recipe);
    const std::uint64_t bytes = loaded->bytes();
    state_.counters.device_bytes.fetch_add(bytes - std::exchange(reserved_bytes, 0));
    const std::uint32_t id = ids_.next();
    // They count until the last stage that uses them has ended.
    state_.tables->add();
    const auto end = [&counters = state_.counters, count = state_.tables](function::LoadedTables* tables) {
      const std::uint64_t last = tables->bytes();  // they may have been exchanged
      delete tables;
      counters.device_bytes.fetch_sub(last);
      count->remove();
    };
    tables_[id] = {kernel, std::shared_ptr<function::LoadedTables>(loaded.release(), end),
                   kernel->needs == nullptr ? function::StageNeeds{} : kernel->needs(recipe), kernel->needs != nullptr};
    return id;
  } catch (const std::bad_alloc&) {
    return give_up({problem("tables: no memory for a copy", format_size(sum), "")});
  } catch (const gpu::CudaError& error) {
    return give_up(
        {problem(fmt::format("tables of {}: the device does not take them", kernel->name), error.what(), "")});
  }
}

/// Tables can be larger on the device than in a recipe. `reserved`: what the caller has reserved, and then all of it.
Result<void> Tenant::reserve_for_load(const function::RemoteKernel& kernel, const function::StageRecipe& recipe,
                                      std::uint64_t& reserved) {
  const std::uint64_t bytes = kernel.load_bytes == nullptr ? 0 : kernel.load_bytes(recipe);
  if (bytes <= reserved) return {};
  auto more = reserve(state_.counters.device_bytes, quota_.device_bytes, bytes - reserved, "memory on the device");
  if (more) reserved = bytes;
  return more;
}

/// The caller has reserved memory for the second version. Lanes go on meanwhile. Throws gpu::CudaError.
Result<void> Tenant::replace_tables(Tables& tables, const function::StageRecipe& recipe) {
  const auto refuse = [&] {
    return failure(problem(fmt::format("tables of {}", tables.kernel->name), "tables for other stages",
                           "what stages of these tables can use"));
  };
  // Who was granted them relies on those that they were.
  if (tables.grant != nullptr) return refuse();
  // Lanes have been found to fit these needs.
  if (tables.kernel->needs != nullptr && tables.kernel->needs(recipe) != tables.needs) return refuse();
  const std::uint64_t before = tables.loaded->bytes();
  state_.exchanges_tables.store(true);
  const std::shared_ptr<void> done(nullptr, [this](void*) { state_.exchanges_tables.store(false); });
  const auto meanwhile = [this] {
    state_.stages.pass_boundaries();
    if (has_gone(socket_.get())) state_.end("");  // so that nothing waits for its batches
  };
  if (!tables.loaded->replace(recipe, meanwhile)) return refuse();
  state_.counters.device_bytes.fetch_add(tables.loaded->bytes() - before);
  state_.counters.table_updates.fetch_add(1);
  return {};
}

Result<function::GrantToken> Tenant::grant_tables(std::uint32_t tables) {
  const auto found = tables_.find(tables);
  if (found == tables_.end()) return failure(problem("a grant: no such tables", std::to_string(tables)));
  Tables& granted = found->second;
  if (granted.loaded == nullptr)
    return failure(problem("a grant: tables of another tenant", std::to_string(tables), "tables that it has loaded"));
  if (!granted.needs_are_known)
    return failure(problem("a grant: nothing is known of what stages of these tables do", std::to_string(tables)));
  if (granted.grant == nullptr) granted.grant = grants_.add(granted.loaded, granted.needs);
  return granted.grant->token();
}

Result<std::uint32_t> Tenant::use_grant(const UseGrant& request) {
  if (tables_.size() >= kMostTablesOfTenant)
    return failure(problem("granted tables: too many", "", fmt::format("at most {}", kMostTablesOfTenant)));
  auto grant = grants_.find(request.token);
  if (grant == nullptr)
    return failure(problem("granted tables: no tables have this token", "", "a tenant that has loaded them here"));
  const auto known = function::needs_of(request.known);
  if (!known) return failure(problem("granted tables: fields that this proxy does not know"));
  if (const char* const more = beyond(grant->needs(), *known); more != nullptr)
    return failure(problem("granted tables that are not what their function's process says",
                           fmt::format("stages that {}", more), "stages that do no more than the chain expects"));
  const std::uint32_t id = ids_.next();
  tables_[id] = {nullptr, nullptr, grant->needs(), true, std::move(grant)};
  return id;
}

/// Before the tables end.
void Tenant::end_grant(const Tables& tables) noexcept {
  if (tables.loaded == nullptr || tables.grant == nullptr) return;
  grants_.end(*tables.grant);
  admission_.release_ended_stages();
}

Result<std::uint32_t> Tenant::make_stage(const MakeStage& request) {
  constexpr std::uint32_t kMostBatchPackets = 1U << 20;
  const auto found = tables_.find(request.tables);
  if (found == tables_.end()) return failure(problem("a stage: no such tables", std::to_string(request.tables)));
  if (request.batch_packets == 0 || request.batch_packets > kMostBatchPackets || request.worker >= kMostWorkers)
    return failure(problem("a stage: wrong number of packets or worker", std::to_string(request.batch_packets)));
  if (state_.stages.size() >= kMostStagesOfTenant)
    return failure(problem("a stage: too many", "", fmt::format("at most {}", kMostStagesOfTenant)));
  const StageUse use{request.worker, request.batch_packets,
                     least_limit(request.multiprocessors, quota_.multiprocessors_of_batch)};
  const Tables& of_stage = found->second;
  const bool are_own = of_stage.loaded != nullptr;
  const std::shared_ptr<function::LoadedTables> tables = are_own ? of_stage.loaded : of_stage.grant->tables();
  if (tables == nullptr) return failure(problem("a stage: its tables have gone with the tenant that granted them"));
  const std::uint64_t bytes = tables->stage_bytes(use);
  std::atomic<std::uint64_t>& used = state_.counters.device_bytes;
  if (auto reserved = reserve(used, quota_.device_bytes, bytes, "memory on the device"); !reserved)
    return failure(std::move(reserved.error()));
  const std::shared_ptr<void> reserved(nullptr, [&used, bytes](void*) { used.fetch_sub(bytes); });
  try {
    return state_.stages.add(
        {reserved, tables, tables->make_stage(use), use, of_stage.needs, are_own ? nullptr : of_stage.grant});
  } catch (const gpu::CudaError& error) {
    return failure(problem("a stage: the device does not take it", error.what()));
  }
}

Result<std::uint32_t> Tenant::make_lane(const MakeLane& request, std::vector<int>& files) {
  auto shape = to_shape(request);
  if (!shape) return failure(std::move(shape.error()));
  if (request.worker >= kMostWorkers)
    return failure(
        problem("a lane: no such worker", std::to_string(request.worker), fmt::format("0..{}", kMostWorkers - 1)));
  const LaneLayout layout(*shape);
  // Threads poll, so a tenant must not have many: its workers share them.
  const std::uint32_t thread = request.worker % (quota_.profile.units * kThreadsOfUnit);
  const Lane of_lane{thread, layout.sizes.on_device,
                     layout.proxy_bytes + layout.tenant_bytes + layout.sizes.on_host + OrderCheck::memory_for(*shape)};
  TenantCounters& counters = state_.counters;
  if (auto reserved = reserve(counters.device_bytes, quota_.device_bytes, of_lane.device_bytes, "memory on the device");
      !reserved)
    return failure(std::move(reserved.error()));
  const auto give_up = [&](Errors errors) {
    counters.device_bytes.fetch_sub(of_lane.device_bytes);
    return failure(std::move(errors));
  };
  if (auto reserved = reserve(counters.host_bytes, quota_.host_bytes, of_lane.host_bytes, "host memory for the device");
      !reserved)
    return give_up(std::move(reserved.error()));
  try {
    std::unique_ptr<LaneWorker>& worker = threads_[thread];
    if (worker == nullptr) worker = std::make_unique<LaneWorker>(state_);
    Result<std::unique_ptr<ServedLane>> lane =
        lanes_.size() < kMostLanesOfTenant
            ? ServedLane::make(state_, *shape, request.worker, request.stages)
            : failure(problem("a lane: too many", "", fmt::format("at most {}", kMostLanesOfTenant)));
    if (lane) {
      const std::uint32_t id = ids_.next();
      files = {(*lane)->proxy_file(), (*lane)->tenant_file(), worker->wake_fd()};
      lanes_[id] = of_lane;
      worker->add(id, std::move(*lane));
      return id;
    }
    counters.host_bytes.fetch_sub(of_lane.host_bytes);
    return give_up(std::move(lane.error()));
  } catch (const std::exception& error) {
    if (threads_[thread] == nullptr) threads_.erase(thread);
    counters.host_bytes.fetch_sub(of_lane.host_bytes);
    return give_up({problem("a lane: the device does not take it", error.what())});
  }
}

void Tenant::reply(const Result<std::uint32_t>& result, std::span<const int> files) noexcept {
  if (!result) return send(refusal(result.error().front()), files);
  Reply answer;
  answer.id = *result;
  send(answer, files);
}

/// A tenant that does not take its replies loses the connection.
void Tenant::send(const Reply& reply, std::span<const int> files) noexcept {
  if (const int error = send_message(socket_.get(), bytes_of(reply), files, kLongestSend); error != 0)
    state_.end("a reply that is not taken: " + std::system_category().message(error));
}

}  // namespace penstock::proxy
