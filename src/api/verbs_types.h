// What stands behind the verbs structures that the shim hands out.
//
// Every verbs object leads to its ibv_context and that to its ibv_device; an object is ours when
// its device is one of ours. Everything else goes to the real libibverbs (verbs_real.h).
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "api/async_source.h"
#include "api/handles.h"
#include "api/queue_pair.h"
#include "nic/device.h"

// Functions that programs may call. Everything else in the library is hidden.
#define MRC_API_EXPORT extern "C" __attribute__((visibility("default")))

namespace mrc::api {

// Providers of the real library look behind a foreign ibv_device to see whether it is theirs; they
// find zeros.
struct VerbsDevice {
  ibv_device device{};
  std::array<std::byte, 1024> zeros{};
  node::DeviceConfig config;
  std::uint64_t guid = 0;
};

// Programs hold &vctx.context, which is the last member of vctx; libibverbs' inline functions look
// before it.
struct VerbsContext {
  verbs_context vctx{};
  std::array<std::byte, 1024> zeros{};
  std::shared_ptr<nic::Device> device;
  std::unique_ptr<AsyncSource> async;
  // The program and each object made from this context; the last one out frees it.
  std::atomic<unsigned> references{1};
  // What async_fd polls. The stream of the verbs side is in it unless only MRC contexts are used.
  std::mutex mutex;
  int epoll_fd = -1;
  unsigned mrc_contexts = 0;
  bool verbs_used = false;
  bool watched = false;

  ~VerbsContext();
};

struct VerbsPd {
  ibv_pd pd{};
  std::uint32_t domain = 0;
  std::atomic<unsigned> children{0};
};

struct VerbsMr {
  ibv_mr mr{};
  nic::MemoryKeys keys;
};

struct VerbsChannel {
  ibv_comp_channel channel{};
  std::shared_ptr<nic::CompletionChannel> nic;
  std::atomic<unsigned> children{0};
};

struct VerbsCq {
  ibv_cq cq{};
  std::unique_ptr<nic::CompletionQueue> nic;
  std::atomic<unsigned> children{0};
  ChildCount counted_by_channel;
};

struct VerbsQp {
  ibv_qp qp{};
  ibv_qp_init_attr init{};
  QueuePair pair;
  ChildCount counted_by_domain;
  ChildCount counted_by_send_cq;
  ChildCount counted_by_receive_cq;
};

// None when the object is not ours.
VerbsDevice* our_device(const ibv_device* device);
VerbsContext* our_context(const ibv_context* context);

inline VerbsPd* our_pd(ibv_pd* pd) {
  return pd != nullptr && our_context(pd->context) != nullptr ? reinterpret_cast<VerbsPd*>(pd)
                                                              : nullptr;
}

// The device of an object that is known to be ours.
inline nic::Device& nic_of(const ibv_context* context) { return *our_context(context)->device; }

// Keeps a context while an object of it lives.
void hold(VerbsContext& context);
void release(VerbsContext& context);

// An MRC context joins or leaves: its events show at async_fd.
int watch_events(VerbsContext& context, int descriptor);
void unwatch_events(VerbsContext& context, int descriptor);
// The verbs side of this context is in use too.
void use_verbs_events(VerbsContext& context);
bool events_block(const VerbsContext& context);

// The verbs names of an event and of its element.
ibv_event_type event_type_of(nic::AsyncKind kind);

}  // namespace mrc::api
