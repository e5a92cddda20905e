#include "plugin.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "connector.h"
#include "listener.h"
#include "log.h"
#include "names.h"
#include "send_comm.h"

namespace mrc::nccl {
namespace {

// The process that called init(); a child of it must leave everything alone.
std::atomic<pid_t> owner{0};

bool in_child() { return owner.load(std::memory_order_relaxed) != getpid(); }

// Runs `body` and turns what it may throw into a result.
template <typename Body>
Result guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    log_warning("out of memory");
    return Result::kSystemError;
  }
}

std::span<std::byte, kHandleBytes> bytes_of(void* handle) {
  return std::span<std::byte, kHandleBytes>(static_cast<std::byte*>(handle), kHandleBytes);
}

ContextHandle* context_of(void* context) { return static_cast<ContextHandle*>(context); }

// NCCL holds both kinds of connections as Connection*.
Connection* connection_of(void* comm) { return static_cast<Connection*>(comm); }
void* handle_of(std::unique_ptr<Connection> made) { return made.release(); }

Result close_connection(void* comm) {
  if (comm == nullptr || in_child()) return Result::kSuccess;
  const std::unique_ptr<Connection> ours(connection_of(comm));
  ours->say_bye();
  return Result::kSuccess;
}

Result refuse_in_child() {
  log_warning("a process made by fork() cannot use its parent's connections");
  return Result::kInvalidUsage;
}

// A new connector, known to the context by the number in `parsed`.
Result begin_connect(Context& context, int device, Handle& parsed) {
  std::shared_ptr<Adapter> adapter = context.adapter(device);
  if (adapter == nullptr) return Result::kSystemError;
  QueuePairOptions options = SendComm::options();
  options.traffic_class = context.traffic_class();
  options.hint = context.hint();
  std::unique_ptr<QueuePair> pair = QueuePair::create(std::move(adapter), options);
  if (pair == nullptr) return Result::kSystemError;
  parsed.connect_token = context.add(std::make_unique<Connector>(std::move(pair), parsed));
  return Result::kSuccess;
}

}  // namespace

Result init(Logger logger) {
  return guarded([&] {
    set_logger(logger);
    owner = getpid();
    warn_of_old_name_once();
    log_settings_once();
    const std::vector<DeviceInfo>* const found = find_devices();
    if (found == nullptr) return Result::kSystemError;
    for (const DeviceInfo& info : *found) {
      log_info("%s: %u planes, %d Mbit/s together, at %s%s%s", info.name.c_str(), info.planes,
               info.speed_mbit, to_text(info.gid).c_str(), info.interface.empty() ? "" : " on ",
               info.interface.c_str());
    }
    return Result::kSuccess;
  });
}

Result make_context(int traffic_class, void** context) {
  return guarded([&] {
    *context = new ContextHandle(std::make_shared<Context>(traffic_class, true));
    return Result::kSuccess;
  });
}

Result finalize(void* context) {
  if (context == nullptr || in_child()) return Result::kSuccess;
  delete context_of(context);
  return Result::kSuccess;
}

Result set_attributes(void* context, const NetAttributes* attributes) {
  if (context == nullptr || attributes == nullptr) return Result::kInvalidArgument;
  (*context_of(context))->set_attributes(*attributes);
  return Result::kSuccess;
}

Result shared_context(int traffic_class, void** context) {
  static std::mutex mutex;
  static auto* contexts = new std::map<int, ContextHandle>;
  return guarded([&] {
    const std::lock_guard lock(mutex);
    ContextHandle& found = (*contexts)[traffic_class];
    if (found == nullptr) found = std::make_shared<Context>(traffic_class, false);
    *context = &found;
    return Result::kSuccess;
  });
}

Result devices(int* count) {
  if (count == nullptr) return Result::kInvalidArgument;
  return guarded([&] {
    const std::vector<DeviceInfo>* const found = find_devices();
    *count = found == nullptr ? 0 : static_cast<int>(found->size());
    return Result::kSuccess;
  });
}

const DeviceInfo* device_info(int device) {
  const std::vector<DeviceInfo>* const found = find_devices();
  const bool exists =
      found != nullptr && device >= 0 && static_cast<std::size_t>(device) < found->size();
  return exists ? &(*found)[static_cast<std::size_t>(device)] : nullptr;
}

Result listen(void* context, int device, void* handle, void** listen_comm) {
  if (context == nullptr || handle == nullptr || listen_comm == nullptr)
    return Result::kInvalidArgument;
  if (in_child()) return refuse_in_child();
  return guarded([&] {
    const ContextHandle& owner_context = *context_of(context);
    std::shared_ptr<Adapter> adapter = owner_context->adapter(device);
    if (adapter == nullptr) return Result::kSystemError;
    std::unique_ptr<Listener> made =
        Listener::create(owner_context, std::move(adapter), bytes_of(handle));
    if (made == nullptr) return Result::kSystemError;
    *listen_comm = made.release();
    return Result::kSuccess;
  });
}

Result connect(void* context, int device, void* handle, void** send_comm) {
  if (context == nullptr || handle == nullptr || send_comm == nullptr)
    return Result::kInvalidArgument;
  *send_comm = nullptr;
  if (in_child()) return refuse_in_child();
  return guarded([&] {
    Context& of = **context_of(context);
    std::optional<Handle> parsed = decode_handle(bytes_of(handle));
    if (!parsed) {
      log_warning(
          "the peer's handle is not one of this plug-in's: do all ranks load the same "
          "version of it?");
      return Result::kInvalidArgument;
    }
    if (parsed->connect_token == 0) {
      const Result begun = begin_connect(of, device, *parsed);
      if (begun != Result::kSuccess) return begun;
      encode(*parsed, bytes_of(handle));
    }
    Connector* const connector = of.find(parsed->connect_token);
    if (connector == nullptr) return Result::kInvalidArgument;
    std::unique_ptr<SendComm> made;
    const Result result = connector->advance(made);
    if (result == Result::kSuccess && made == nullptr) return result;
    of.remove(std::exchange(parsed->connect_token, 0));
    encode(*parsed, bytes_of(handle));
    *send_comm = handle_of(std::move(made));
    return result;
  });
}

Result accept(void* listen_comm, void** receive_comm) {
  if (listen_comm == nullptr || receive_comm == nullptr) return Result::kInvalidArgument;
  *receive_comm = nullptr;
  if (in_child()) return refuse_in_child();
  return guarded([&] {
    std::unique_ptr<ReceiveComm> made;
    const Result result = static_cast<Listener*>(listen_comm)->accept(made);
    *receive_comm = handle_of(std::move(made));
    return result;
  });
}

Result close_send(void* comm) { return close_connection(comm); }

Result close_receive(void* comm) { return close_connection(comm); }

Result close_listen(void* comm) {
  if (comm == nullptr || in_child()) return Result::kSuccess;
  delete static_cast<Listener*>(comm);
  return Result::kSuccess;
}

Result register_memory(void* comm, void* data, std::size_t size, int type, void** handle) {
  if (comm == nullptr) return Result::kInvalidArgument;
  return guarded([&] { return connection_of(comm)->register_memory(data, size, type, handle); });
}

Result deregister_memory(void* comm, void* handle) {
  if (comm == nullptr || handle == nullptr) return Result::kSuccess;
  return connection_of(comm)->deregister_memory(handle);
}

Result send(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) {
  if (comm == nullptr || request == nullptr) return Result::kInvalidArgument;
  return static_cast<SendComm*>(connection_of(comm))
      ->send(data, size, tag, static_cast<MemoryHandle*>(memory), request);
}

Result receive(void* comm, const Receives& receives, void** request) {
  if (comm == nullptr || request == nullptr) return Result::kInvalidArgument;
  if (receives.count < 1 || receives.count > kMaxGroup || receives.data == nullptr ||
      receives.tags == nullptr || receives.memory == nullptr) {
    return Result::kInvalidArgument;
  }
  return static_cast<ReceiveComm*>(connection_of(comm))->receive(receives, request);
}

// Data is in host memory when its receive is done; there is nothing to wait for.
Result flush(void* comm, void** request) {
  if (comm == nullptr || request == nullptr) return Result::kInvalidArgument;
  *request = nullptr;
  return Result::kSuccess;
}

Result test(void* request, int* done, int* sizes) {
  if (request == nullptr || done == nullptr) return Result::kInvalidArgument;
  auto& ours = *static_cast<Request*>(request);
  if (!ours.in_use) return Result::kInvalidUsage;
  return ours.owner->test(ours, done, sizes);
}

}  // namespace mrc::nccl
