// A group of ranks that can reach each other: a device, a channel to each other rank that is
// needed, and a rendezvous that tells when one of them is gone. Public C API only.
//
// Not thread safe. Failures are thrown as Failure; tell_failure() lets the other ranks know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "collective/channel.h"
#include "collective/device.h"
#include "collective/placement.h"
#include "collective/rendezvous.h"

namespace mrc::collective {

// Who talks to whom: each rank with the next one, or all with all.
enum class Links : std::uint8_t { kRing, kMesh };

struct CommunicatorOptions {
  Placement place;
  DeviceOptions device;
  QpProfileIds profiles;
  ChannelShape shape;
  Links links = Links::kRing;
  double timeout_s = 60;  // without anything moving; also for ranks to come
};

// Memory that chunks leave from.
class Memory {
 public:
  Memory(const Device& device, std::size_t bytes);

  std::span<std::byte> bytes() { return bytes_; }
  template <typename T>
  std::span<T> as() {
    void* const start = bytes_.data();
    return {static_cast<T*>(start), bytes_.size() / sizeof(T)};
  }
  std::uint32_t key() const { return region_->lkey; }

 private:
  std::vector<std::byte> bytes_;
  Owned<ibv_mr> region_;
};

class Communicator {
 public:
  // Returns when all ranks are connected.
  explicit Communicator(const CommunicatorOptions& options);

  unsigned rank() const { return options_.place.rank; }
  unsigned ranks() const { return options_.place.ranks; }
  const Device& device() const { return device_; }
  const ChannelShape& shape() const { return options_.shape; }
  bool has_mesh() const { return options_.links == Links::kMesh; }

  Channel& to(unsigned rank) { return *channels_.at(rank); }
  Channel& next() { return to((rank() + 1) % ranks()); }
  Channel& previous() { return to((rank() + ranks() - 1) % ranks()); }
  std::vector<mrc_qp*> queue_pairs() const;
  std::uint64_t bytes_received() const;

  // The patience with silent ranks begins anew: before each operation, as programs compute in
  // between.
  void restart_patience() { moved_ns_ = 0; }
  // Lets the device work and takes what it has; sleeps when there is nothing. Throws Failure when
  // a rank is gone, a queue pair failed, or nothing moved for too long.
  void progress();
  // Called from progress() every 20 ms or so, also while it waits.
  void on_look(std::function<void()> look) { look_ = std::move(look); }

  void tell_failure(const std::string& why) noexcept { rendezvous_.tell_failure(why); }
  // Waits until every rank is done. Nothing may be under way.
  void finish() { rendezvous_.finish(); }

 private:
  void create_channels();
  void connect();
  bool poll();
  void sleep();
  void look_around();

  CommunicatorOptions options_;
  Rendezvous rendezvous_;
  Device device_;
  Owned<mrc_comp_channel> events_;
  int events_fd_ = -1;
  Owned<mrc_cq> cq_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by rank; none to ourselves
  std::function<void()> look_;
  unsigned empty_polls_ = 0;
  unsigned polls_ = 0;
  std::int64_t moved_ns_ = 0;  // 0 = since the last look
  std::int64_t next_look_ns_ = 0;
};

}  // namespace mrc::collective
