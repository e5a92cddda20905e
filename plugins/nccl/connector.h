// The connecting side of a connection that is being set up.
//
// NCCL calls again and again until it is done. The listener's addresses are tried in turn, until
// one answers or the time is over. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "messages.h"
#include "nccl_net.h"
#include "queue_pair.h"
#include "send_comm.h"
#include "stream.h"

namespace mrc::nccl {

class Connector {
 public:
  Connector(std::unique_ptr<QueuePair> pair, Handle handle);

  // One step further. `made` stays empty while there is more to do. Errors have been logged.
  Result advance(std::unique_ptr<SendComm>& made);

 private:
  enum class Stage : std::uint8_t { kIdle, kOpening, kWaiting };

  void open_next();
  Result on_no_way(int reason);
  Result on_welcome(const Message& welcome, std::unique_ptr<SendComm>& made);
  std::string where() const;

  std::unique_ptr<QueuePair> pair_;
  Handle handle_;
  Stream stream_;
  Stage stage_ = Stage::kIdle;
  std::size_t next_address_ = 0;
  std::uint64_t started_ms_;
  std::uint64_t stage_since_ms_ = 0;
};

}  // namespace mrc::nccl
