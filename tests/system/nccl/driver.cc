#include "driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace mrc::test {
namespace {

struct Log {
  std::mutex mutex;
  std::string text;
};
Log& the_log() {
  static auto* const instance = new Log;
  return *instance;
}

[[gnu::format(printf, 5, 6)]] void logger(nccl::LogLevel level, unsigned long subsystems,
                                          const char* file, int line, const char* format, ...) {
  std::array<char, 2048> text;
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  MRC_CHECK(file != nullptr && line >= 0 && subsystems != 0);
  std::fprintf(stderr, "[%d] %s %s\n", getpid(), level == nccl::LogLevel::kWarn ? "warn" : "info",
               text.data());
  const std::lock_guard lock(the_log().mutex);
  the_log().text += text.data();
  the_log().text += '\n';
}

// For people: another plug-in over our library, see docs/interop.md.
bool somebody_elses() {
  static const bool kSaid = std::getenv("ANOTHER_PLUGIN") != nullptr;
  return kSaid;
}

template <typename From>
Properties common_properties(const From& from) {
  MRC_CHECK(from.device_type == nccl::kDeviceTypeHost && from.port == 1 && from.max_comms > 0);
  return {.name = from.name,
          .ptr_support = from.ptr_support,
          .speed = from.speed,
          .max_receives = from.max_receives,
          .guid = from.guid};
}

template <typename Table>
Table& symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  MRC_CHECK(found != nullptr);
  return *static_cast<Table*>(found);
}

}  // namespace

void die(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::fflush(stderr);
  _exit(1);
}

void Patience::wait() const {
  if (std::chrono::steady_clock::now() > end_) die("took too long: %s", what_);
  std::this_thread::yield();
}

std::string Driver::log_text() {
  const std::lock_guard lock(the_log().mutex);
  return the_log().text;
}

Driver::Driver(const std::string& plugin, int version) : version_(version) {
  library_ = dlopen(plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) die("%s", dlerror());
  take();
}

void Driver::take() {
  switch (version_) {
    case 8:
      take_v8();
      break;
    case 9:
      take_v9();
      break;
    case 10:
      take_v10();
      break;
    case 11:
      take_with_context<nccl::PropertiesV11, nccl::NetV11>("ncclNetPlugin_v11");
      break;
    case 12:
      take_with_context<nccl::PropertiesV12, nccl::NetV12>("ncclNetPlugin_v12");
      break;
    default:
      die("no such version: %d", version_);
  }
}

Driver::~Driver() {
  finalize();
  dlclose(library_);
}

// As NCCL does it: the table is read again afterwards, since a plug-in may fill it in its init().
Result Driver::try_init() {
  const Result result = init_();
  if (result == Result::kSuccess) take();
  return result;
}

void Driver::init() {
  MRC_CHECK(name_ == "OpenMRC" || somebody_elses());
  MRC_CHECK(try_init() == Result::kSuccess);
  int count = 0;
  MRC_CHECK(devices(&count) == Result::kSuccess && count >= 1);
  Properties of;
  MRC_CHECK(properties(0, of) == Result::kSuccess);
  MRC_CHECK(of.speed > 0 && of.max_receives == 8 && (of.ptr_support & nccl::kPointerHost) != 0);
  MRC_CHECK(of.ptr_support == nccl::kPointerHost || somebody_elses());
}

void Driver::finalize() {
  if (finalize_context && context_ != nullptr)
    MRC_CHECK(finalize_context(context_) == Result::kSuccess);
  context_ = nullptr;
}

template <typename Net>
void Driver::take_common(const Net& net) {
  name_ = net.name;
  devices = net.devices;
  accept = [&net](void* listener, void** made) {
    void* offload = nullptr;
    return net.accept(listener, made, &offload);
  };
  reg_mr = net.reg_mr;
  dereg_mr = net.dereg_mr;
  iflush = net.iflush;
  test = net.test;
  close_send = net.close_send;
  close_receive = net.close_receive;
  close_listen = net.close_listen;
  MRC_CHECK(net.get_device_mr == nullptr);
  MRC_CHECK(net.reg_mr_dma_buf == nullptr || somebody_elses());
}

void Driver::take_v8() {
  const auto& net = symbol<nccl::NetV8>(library_, "ncclNetPlugin_v8");
  take_common(net);
  init_ = [&net] { return net.init(logger); };
  properties = [&net](int device, Properties& out) {
    nccl::PropertiesV8 of{};
    const Result result = net.get_properties(device, &of);
    if (result == Result::kSuccess) out = common_properties(of);
    return result;
  };
  listen = net.listen;
  connect = [&net](int device, void* handle, void** made) {
    return net.connect(device, handle, made, nullptr);
  };
  isend = [&net](void* comm, void* data, std::size_t size, int tag, void* memory, void** request) {
    return net.isend(comm, data, static_cast<int>(size), tag, memory, request);
  };
  irecv = [&net](void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                 void** request) {
    std::vector<int> narrow(sizes, sizes + count);
    return net.irecv(comm, count, data, narrow.data(), tags, memory, request);
  };
}

void Driver::take_v9() {
  const auto& net = symbol<nccl::NetV9>(library_, "ncclNetPlugin_v9");
  take_common(net);
  init_ = [&net] { return net.init(logger); };
  properties = [&net](int device, Properties& out) {
    nccl::PropertiesV9 of{};
    const Result result = net.get_properties(device, &of);
    if (result == Result::kSuccess) out = common_properties(of);
    return result;
  };
  listen = net.listen;
  connect = [&net](int device, void* handle, void** made) {
    return net.connect(device, handle, made, nullptr);
  };
  isend = net.isend;
  irecv = net.irecv;
}

void Driver::take_v10() {
  const auto& net = symbol<nccl::NetV10>(library_, "ncclNetPlugin_v10");
  take_common(net);
  init_ = [&net] { return net.init(logger, nullptr); };
  properties = [&net](int device, Properties& out) {
    nccl::PropertiesV9 of{};
    const Result result = net.get_properties(device, &of);
    if (result == Result::kSuccess) out = common_properties(of);
    return result;
  };
  listen = net.listen;
  connect = [&net](int device, void* handle, void** made) {
    nccl::CommConfig config{.traffic_class = 8};
    return net.connect(device, &config, handle, made, nullptr);
  };
  isend = [&net](void* comm, void* data, std::size_t size, int tag, void* memory, void** request) {
    return net.isend(comm, data, size, tag, memory, nullptr, request);
  };
  irecv = [&net](void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                 void** request) {
    return net.irecv(comm, count, data, sizes, tags, memory, nullptr, request);
  };
}

template <typename From, typename Table>
void Driver::take_with_context(const char* name) {
  const auto& net = symbol<Table>(library_, name);
  take_common(net);
  init_ = [this, &net] {
    nccl::CommConfig config{.traffic_class = nccl::kTrafficClassUndefined};
    return net.init(&context_, 42, &config, logger, nullptr);
  };
  properties = [&net](int device, Properties& out) {
    From of{};
    const Result result = net.get_properties(device, &of);
    if (result != Result::kSuccess) return result;
    out = common_properties(of);
    out.max_p2p_bytes = of.max_p2p_bytes;
    MRC_CHECK(of.virtual_device.count == 1 && of.virtual_device.devices[0] == device);
    MRC_CHECK(of.max_multi_request == 1 && of.max_p2p_bytes <= nccl::kMaxTransferBytes);
    return result;
  };
  listen = [this, &net](int device, void* handle, void** made) {
    return net.listen(context_, device, handle, made);
  };
  connect = [this, &net](int device, void* handle, void** made) {
    return net.connect(context_, device, handle, made, nullptr);
  };
  isend = [&net](void* comm, void* data, std::size_t size, int tag, void* memory, void** request) {
    return net.isend(comm, data, size, tag, memory, nullptr, request);
  };
  irecv = [&net](void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                 void** request) {
    return net.irecv(comm, count, data, sizes, tags, memory, nullptr, request);
  };
  finalize_context = net.finalize;
  set_attributes = [this, &net](nccl::NetAttributes* attributes) {
    return net.set_net_attributes(context_, attributes);
  };
}

}  // namespace mrc::test
