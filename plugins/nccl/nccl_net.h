// NCCL's network plug-in interface, versions 8 to 12, in our own words: names, order and types of
// the members are what the binary interface demands, nothing else is taken over.
//
// A plug-in exports one structure for each version, under the names ncclNetPlugin_v8 and so on;
// NCCL takes the newest one it knows. RCCL has the same structures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrc::nccl {

enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
};

enum class LogLevel : int { kNone = 0, kVersion = 1, kWarn = 2, kInfo = 3, kAbort = 4, kTrace = 5 };
// Subsystems of NCCL's log; the user chooses some by NCCL_DEBUG_SUBSYS.
inline constexpr unsigned long kLogInit = 0x1;
inline constexpr unsigned long kLogNet = 0x10;
using Logger = void (*)(LogLevel level, unsigned long subsystems, const char* file, int line,
                        const char* format, ...);
using ProfilerCallback = Result (*)(void** handle, int type, void* parent, std::int64_t plugin,
                                    void* data);

inline constexpr std::size_t kHandleBytes = 128;
inline constexpr int kMaxRequests = 32;    // outstanding receives of a connection
inline constexpr int kPointerHost = 0x1;   // bit of ptr_support, and a type for reg_mr
inline constexpr int kPointerCuda = 0x2;   // likewise
inline constexpr int kDeviceTypeHost = 0;  // no offload to the GPU
inline constexpr int kTrafficClassUndefined = -1;
inline constexpr std::size_t kMaxTransferBytes = std::size_t{1} << 40;
// On entry of irecv *request may hold this instead of a pointer: the data carries its own flags.
inline constexpr std::uintptr_t kOptionalReceiveCompletion = 0x1;

template <int kDevices>
struct VirtualDevice {
  int count;
  int devices[kDevices];  // NOLINT(modernize-avoid-c-arrays)
};

struct CommConfig {
  int traffic_class;
};

struct CommAttributes {
  std::int32_t max_concurrent_peers;
  std::int32_t min_concurrent_peers;
  std::int32_t max_flows_per_peer;
  std::int32_t min_flows_per_peer;
};

// Numbers that are not known are -1.
struct NetAttributes {
  CommAttributes send;
  CommAttributes receive;
  std::uint32_t operation;
  std::uint32_t algorithm;
  std::uint32_t protocol;
};

struct PropertiesV8 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int speed;  // Mbit/s
  int port;
  float latency;  // us
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
};

// Also that of version 10.
struct PropertiesV9 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> virtual_device;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
};

struct PropertiesV11 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<4> virtual_device;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
  int max_multi_request;
};

struct PropertiesV12 {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int ptr_support;
  int reg_is_global;
  int force_flush;
  int speed;
  int port;
  float latency;
  int max_comms;
  int max_receives;
  int device_type;
  int device_version;
  VirtualDevice<8> virtual_device;
  std::size_t max_p2p_bytes;
  std::size_t max_coll_bytes;
  int max_multi_request;
  std::int16_t rail_id;   // -1 = not known
  std::int16_t plane_id;  // likewise
};

// Members that every version has with the same type, in the middle and at the end.
using RegMr = Result (*)(void* comm, void* data, std::size_t size, int type, void** handle);
using RegMrDmaBuf = Result (*)(void* comm, void* data, std::size_t size, int type,
                               std::uint64_t offset, int fd, void** handle);
using DeregMr = Result (*)(void* comm, void* handle);
using Flush = Result (*)(void* comm, int count, void** data, int* sizes, void** handles,
                         void** request);
using Test = Result (*)(void* request, int* done, int* sizes);
using Close = Result (*)(void* comm);
using Accept = Result (*)(void* listen_comm, void** receive_comm, void** device_comm);
using GetDeviceMr = Result (*)(void* comm, void* handle, void** device_handle);
using ReceiveConsumed = Result (*)(void* comm, int count, void* request);

struct NetV8 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV8* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, void** device_comm);
  Accept accept;
  RegMr reg_mr;
  RegMrDmaBuf reg_mr_dma_buf;
  DeregMr dereg_mr;
  Result (*isend)(void* comm, void* data, int size, int tag, void* memory, void** request);
  Result (*irecv)(void* comm, int count, void** data, int* sizes, int* tags, void** memory,
                  void** request);
  Flush iflush;
  Test test;
  Close close_send;
  Close close_receive;
  Close close_listen;
  GetDeviceMr get_device_mr;
  ReceiveConsumed receive_consumed;
};

struct NetV9 {
  const char* name;
  Result (*init)(Logger logger);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, void* handle, void** send_comm, void** device_comm);
  Accept accept;
  RegMr reg_mr;
  RegMrDmaBuf reg_mr_dma_buf;
  DeregMr dereg_mr;
  Result (*isend)(void* comm, void* data, std::size_t size, int tag, void* memory, void** request);
  Result (*irecv)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                  void** request);
  Flush iflush;
  Test test;
  Close close_send;
  Close close_receive;
  Close close_listen;
  GetDeviceMr get_device_mr;
  ReceiveConsumed receive_consumed;
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* properties);
};

struct NetV10 {
  const char* name;
  Result (*init)(Logger logger, ProfilerCallback profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, PropertiesV9* properties);
  Result (*listen)(int device, void* handle, void** listen_comm);
  Result (*connect)(int device, CommConfig* config, void* handle, void** send_comm,
                    void** device_comm);
  Accept accept;
  RegMr reg_mr;
  RegMrDmaBuf reg_mr_dma_buf;
  DeregMr dereg_mr;
  Result (*isend)(void* comm, void* data, std::size_t size, int tag, void* memory, void* profile,
                  void** request);
  Result (*irecv)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                  void** profiles, void** request);
  Flush iflush;
  Test test;
  Close close_send;
  Close close_receive;
  Close close_listen;
  GetDeviceMr get_device_mr;
  ReceiveConsumed receive_consumed;
  Result (*make_virtual_device)(int* device, VirtualDevice<4>* properties);
};

// Versions 11 and 12 differ in the properties and in how many devices a virtual one may have.
template <typename Properties, int kDevices>
struct NetWithContext {
  const char* name;
  Result (*init)(void** context, std::uint64_t comm_id, CommConfig* config, Logger logger,
                 ProfilerCallback profiler);
  Result (*devices)(int* count);
  Result (*get_properties)(int device, Properties* properties);
  Result (*listen)(void* context, int device, void* handle, void** listen_comm);
  Result (*connect)(void* context, int device, void* handle, void** send_comm, void** device_comm);
  Accept accept;
  RegMr reg_mr;
  RegMrDmaBuf reg_mr_dma_buf;
  DeregMr dereg_mr;
  Result (*isend)(void* comm, void* data, std::size_t size, int tag, void* memory, void* profile,
                  void** request);
  Result (*irecv)(void* comm, int count, void** data, std::size_t* sizes, int* tags, void** memory,
                  void** profiles, void** request);
  Flush iflush;
  Test test;
  Close close_send;
  Close close_receive;
  Close close_listen;
  GetDeviceMr get_device_mr;
  ReceiveConsumed receive_consumed;
  Result (*make_virtual_device)(int* device, VirtualDevice<kDevices>* properties);
  Result (*finalize)(void* context);
  Result (*set_net_attributes)(void* context, NetAttributes* attributes);
};
using NetV11 = NetWithContext<PropertiesV11, 4>;
using NetV12 = NetWithContext<PropertiesV12, 8>;

static_assert(sizeof(NetV8) == 19 * sizeof(void*));
static_assert(sizeof(NetV9) == 20 * sizeof(void*) && sizeof(NetV10) == sizeof(NetV9));
static_assert(sizeof(NetV11) == 22 * sizeof(void*) && sizeof(NetV12) == sizeof(NetV11));
static_assert(sizeof(PropertiesV8) == 64 && sizeof(PropertiesV9) == 104);
static_assert(sizeof(PropertiesV11) == 112 && sizeof(PropertiesV12) == 128);
static_assert(sizeof(NetAttributes) == 44);

}  // namespace mrc::nccl
