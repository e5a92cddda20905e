// The structures that NCCL looks for, one for each version, all over the same functions.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "credit.h"
#include "names.h"
#include "nccl_net.h"
#include "plugin.h"

namespace mrc::nccl {
namespace {

// Without a measured value NCCL takes 0 and prefers many small messages to few large ones.
constexpr float kLatencyUs = 10.0F;
constexpr int kMaxComms = 16'384;

// --- Properties

// NCCL writes to none of these strings, its structures only say so.
char* writable(const std::string& text) {
  return text.empty() ? nullptr : const_cast<char*>(text.c_str());  // NOLINT
}

template <typename Properties>
Result get_properties_v8(int device, Properties* out) {
  const DeviceInfo* const info = device_info(device);
  if (info == nullptr || out == nullptr) return Result::kInvalidArgument;
  *out = {};
  out->name = writable(info->name);
  out->pci_path = writable(info->pci_path);
  out->guid = info->guid;
  out->ptr_support = kPointerHost;
  out->reg_is_global = 0;
  out->speed = info->speed_mbit;
  out->port = 1;
  out->latency = kLatencyUs;
  out->max_comms = kMaxComms;
  out->max_receives = static_cast<int>(kMaxGroup);
  out->device_type = kDeviceTypeHost;
  return Result::kSuccess;
}

template <typename Properties>
Result get_properties_v9(int device, Properties* out) {
  const Result result = get_properties_v8(device, out);
  if (result != Result::kSuccess) return result;
  out->virtual_device.count = 1;
  out->virtual_device.devices[0] = device;
  out->max_p2p_bytes = out->max_coll_bytes = kMaxTransferBytes;
  return Result::kSuccess;
}

Result get_properties_v11(int device, PropertiesV11* out) {
  const Result result = get_properties_v9(device, out);
  if (result == Result::kSuccess) out->max_multi_request = 1;
  return result;
}

// A device spans all planes, so that it belongs to none.
Result get_properties_v12(int device, PropertiesV12* out) {
  const Result result = get_properties_v9(device, out);
  if (result != Result::kSuccess) return result;
  out->max_multi_request = 1;
  out->rail_id = out->plane_id = -1;
  return Result::kSuccess;
}

// --- The same in all versions

Result accept_any(void* listen_comm, void** receive_comm, void** /*device_comm*/) {
  return accept(listen_comm, receive_comm);
}

Result flush_any(void* comm, int /*count*/, void** /*data*/, int* /*sizes*/, void** /*memory*/,
                 void** request) {
  return flush(comm, request);
}

template <typename Size>
Result receive_any(void* comm, int count, void** data, const Size* sizes, const int* tags,
                   void** memory, void** request) {
  if (count < 1 || count > static_cast<int>(kMaxGroup) || sizes == nullptr)
    return Result::kInvalidArgument;
  Receives receives{
      .count = static_cast<unsigned>(count), .data = data, .tags = tags, .memory = memory};
  for (unsigned i = 0; i < receives.count; ++i)
    receives.sizes.at(i) = static_cast<std::size_t>(std::max<Size>(sizes[i], 0));
  return receive(comm, receives, request);
}

// --- Versions 8 and 9: one context for all

Result init_v8(Logger logger) { return init(logger); }

Result listen_v8(int device, void* handle, void** listen_comm) {
  void* context = nullptr;
  const Result result = shared_context(kTrafficClassUndefined, &context);
  return result == Result::kSuccess ? listen(context, device, handle, listen_comm) : result;
}

Result connect_v8(int device, void* handle, void** send_comm, void** /*device_comm*/) {
  void* context = nullptr;
  const Result result = shared_context(kTrafficClassUndefined, &context);
  return result == Result::kSuccess ? connect(context, device, handle, send_comm) : result;
}

Result send_v8(void* comm, void* data, int size, int tag, void* memory, void** request) {
  if (size < 0) return Result::kInvalidArgument;
  return send(comm, data, static_cast<std::size_t>(size), tag, memory, request);
}

Result receive_v8(void* comm, int count, void** data, int* sizes, int* tags, void** memory,
                  void** request) {
  return receive_any(comm, count, data, sizes, tags, memory, request);
}

Result send_v9(void* comm, void* data, std::size_t size, int tag, void* memory, void** request) {
  return send(comm, data, size, tag, memory, request);
}

Result receive_v9(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                  void** request) {
  return receive_any(comm, count, data, sizes, tags, memory, request);
}

// --- Version 10: profiler handles, and a traffic class for each connection

Result init_v10(Logger logger, ProfilerCallback /*profiler*/) { return init(logger); }

Result connect_v10(int device, CommConfig* config, void* handle, void** send_comm,
                   void** /*device_comm*/) {
  const int traffic_class = config == nullptr ? kTrafficClassUndefined : config->traffic_class;
  void* context = nullptr;
  const Result result = shared_context(traffic_class, &context);
  return result == Result::kSuccess ? connect(context, device, handle, send_comm) : result;
}

Result send_v10(void* comm, void* data, std::size_t size, int tag, void* memory, void* /*profile*/,
                void** request) {
  return send(comm, data, size, tag, memory, request);
}

Result receive_v10(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                   void** /*profiles*/, void** request) {
  return receive_any(comm, count, data, sizes, tags, memory, request);
}

// --- Versions 11 and 12: a context for each communicator

Result init_v11(void** context, std::uint64_t /*comm_id*/, CommConfig* config, Logger logger,
                ProfilerCallback /*profiler*/) {
  if (context == nullptr) return Result::kInvalidArgument;
  *context = nullptr;
  const Result result = init(logger);
  if (result != Result::kSuccess) return result;
  return make_context(config == nullptr ? kTrafficClassUndefined : config->traffic_class, context);
}

Result connect_v11(void* context, int device, void* handle, void** send_comm,
                   void** /*device_comm*/) {
  return connect(context, device, handle, send_comm);
}

Result set_attributes_v11(void* context, NetAttributes* attributes) {
  return set_attributes(context, attributes);
}

template <typename Properties, int kDevices>
constexpr NetWithContext<Properties, kDevices> with_context(Result (*get_properties)(int,
                                                                                     Properties*)) {
  return {.name = kName,
          .init = init_v11,
          .devices = devices,
          .get_properties = get_properties,
          .listen = listen,
          .connect = connect_v11,
          .accept = accept_any,
          .reg_mr = register_memory,
          .reg_mr_dma_buf = nullptr,
          .dereg_mr = deregister_memory,
          .isend = send_v10,
          .irecv = receive_v10,
          .iflush = flush_any,
          .test = test,
          .close_send = close_send,
          .close_receive = close_receive,
          .close_listen = close_listen,
          .get_device_mr = nullptr,
          .receive_consumed = nullptr,
          .make_virtual_device = nullptr,
          .finalize = finalize,
          .set_net_attributes = set_attributes_v11};
}

}  // namespace
}  // namespace mrc::nccl

// NOLINTBEGIN(readability-identifier-naming)
#define MRC_NCCL_EXPORT extern "C" __attribute__((visibility("default")))

MRC_NCCL_EXPORT mrc::nccl::NetV8 ncclNetPlugin_v8;
MRC_NCCL_EXPORT mrc::nccl::NetV9 ncclNetPlugin_v9;
MRC_NCCL_EXPORT mrc::nccl::NetV10 ncclNetPlugin_v10;
MRC_NCCL_EXPORT mrc::nccl::NetV11 ncclNetPlugin_v11;
MRC_NCCL_EXPORT mrc::nccl::NetV12 ncclNetPlugin_v12;

mrc::nccl::NetV8 ncclNetPlugin_v8{.name = mrc::nccl::kName,
                                  .init = mrc::nccl::init_v8,
                                  .devices = mrc::nccl::devices,
                                  .get_properties = mrc::nccl::get_properties_v8,
                                  .listen = mrc::nccl::listen_v8,
                                  .connect = mrc::nccl::connect_v8,
                                  .accept = mrc::nccl::accept_any,
                                  .reg_mr = mrc::nccl::register_memory,
                                  .reg_mr_dma_buf = nullptr,
                                  .dereg_mr = mrc::nccl::deregister_memory,
                                  .isend = mrc::nccl::send_v8,
                                  .irecv = mrc::nccl::receive_v8,
                                  .iflush = mrc::nccl::flush_any,
                                  .test = mrc::nccl::test,
                                  .close_send = mrc::nccl::close_send,
                                  .close_receive = mrc::nccl::close_receive,
                                  .close_listen = mrc::nccl::close_listen,
                                  .get_device_mr = nullptr,
                                  .receive_consumed = nullptr};

mrc::nccl::NetV9 ncclNetPlugin_v9{.name = mrc::nccl::kName,
                                  .init = mrc::nccl::init_v8,
                                  .devices = mrc::nccl::devices,
                                  .get_properties = mrc::nccl::get_properties_v9,
                                  .listen = mrc::nccl::listen_v8,
                                  .connect = mrc::nccl::connect_v8,
                                  .accept = mrc::nccl::accept_any,
                                  .reg_mr = mrc::nccl::register_memory,
                                  .reg_mr_dma_buf = nullptr,
                                  .dereg_mr = mrc::nccl::deregister_memory,
                                  .isend = mrc::nccl::send_v9,
                                  .irecv = mrc::nccl::receive_v9,
                                  .iflush = mrc::nccl::flush_any,
                                  .test = mrc::nccl::test,
                                  .close_send = mrc::nccl::close_send,
                                  .close_receive = mrc::nccl::close_receive,
                                  .close_listen = mrc::nccl::close_listen,
                                  .get_device_mr = nullptr,
                                  .receive_consumed = nullptr,
                                  .make_virtual_device = nullptr};

mrc::nccl::NetV10 ncclNetPlugin_v10{.name = mrc::nccl::kName,
                                    .init = mrc::nccl::init_v10,
                                    .devices = mrc::nccl::devices,
                                    .get_properties = mrc::nccl::get_properties_v9,
                                    .listen = mrc::nccl::listen_v8,
                                    .connect = mrc::nccl::connect_v10,
                                    .accept = mrc::nccl::accept_any,
                                    .reg_mr = mrc::nccl::register_memory,
                                    .reg_mr_dma_buf = nullptr,
                                    .dereg_mr = mrc::nccl::deregister_memory,
                                    .isend = mrc::nccl::send_v10,
                                    .irecv = mrc::nccl::receive_v10,
                                    .iflush = mrc::nccl::flush_any,
                                    .test = mrc::nccl::test,
                                    .close_send = mrc::nccl::close_send,
                                    .close_receive = mrc::nccl::close_receive,
                                    .close_listen = mrc::nccl::close_listen,
                                    .get_device_mr = nullptr,
                                    .receive_consumed = nullptr,
                                    .make_virtual_device = nullptr};

mrc::nccl::NetV11 ncclNetPlugin_v11 =
    mrc::nccl::with_context<mrc::nccl::PropertiesV11, 4>(mrc::nccl::get_properties_v11);
mrc::nccl::NetV12 ncclNetPlugin_v12 =
    mrc::nccl::with_context<mrc::nccl::PropertiesV12, 8>(mrc::nccl::get_properties_v12);
// NOLINTEND(readability-identifier-naming)

namespace mrc::nccl {
namespace {

// NCCL compares NCCL_NET with the name right after it has loaded the library.
__attribute__((constructor)) void answer_to_old_name() {
  if (!loaded_by_old_name()) return;
  ncclNetPlugin_v8.name = ncclNetPlugin_v9.name = ncclNetPlugin_v10.name = ncclNetPlugin_v11.name =
      ncclNetPlugin_v12.name = kOldName;
}

}  // namespace
}  // namespace mrc::nccl
