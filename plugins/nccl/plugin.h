// What the plug-in does, the same for all versions of NCCL's interface; entry.cc wraps it in each.
//
// Nothing throws: lack of memory is kSystemError. Handles that are none are kInvalidArgument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "adapter.h"
#include "context.h"
#include "nccl_net.h"
#include "receive_comm.h"

namespace mrc::nccl {

// What NCCL holds as a communicator's context.
using ContextHandle = std::shared_ptr<Context>;

Result init(Logger logger);
Result make_context(int traffic_class, void** context);
Result finalize(void* context);
Result set_attributes(void* context, const NetAttributes* attributes);
// For interfaces that know no contexts: one for each traffic class, for ever.
Result shared_context(int traffic_class, void** context);

Result devices(int* count);
// None when there is no such device. Lives for ever.
const DeviceInfo* device_info(int device);

Result listen(void* context, int device, void* handle, void** listen_comm);
Result connect(void* context, int device, void* handle, void** send_comm);
Result accept(void* listen_comm, void** receive_comm);
Result close_send(void* comm);
Result close_receive(void* comm);
Result close_listen(void* comm);

Result register_memory(void* comm, void* data, std::size_t size, int type, void** handle);
Result deregister_memory(void* comm, void* handle);

Result send(void* comm, void* data, std::size_t size, int tag, void* memory, void** request);
Result receive(void* comm, const Receives& receives, void** request);
Result flush(void* comm, void** request);
Result test(void* request, int* done, int* sizes);

}  // namespace mrc::nccl
