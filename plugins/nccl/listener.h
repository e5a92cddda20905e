// The accepting side: waits for connections and sets up a queue pair for each that knows the
// cookie.
//
// Whoever reaches the TCP port can talk to this; it must say hello within some seconds and know the
// cookie from the handle, and only some may try at a time. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>

#include "adapter.h"
#include "context.h"
#include "messages.h"
#include "nccl_net.h"
#include "receive_comm.h"
#include "stream.h"

namespace mrc::nccl {

class Listener {
 public:
  // None: the reason has been logged. Writes the handle for the peer.
  static std::unique_ptr<Listener> create(std::shared_ptr<Context> context,
                                          std::shared_ptr<Adapter> adapter,
                                          std::span<std::byte, kHandleBytes> handle);

  // One step further with all who knocked. `made` stays empty while nobody is through.
  Result accept(std::unique_ptr<ReceiveComm>& made);

 private:
  // Somebody who connected.
  struct Guest {
    Stream stream;
    std::uint64_t since_ms = 0;
    Message hello;
    std::unique_ptr<QueuePair> pair;  // exists once it said hello
  };

  Listener(std::shared_ptr<Context> context, std::shared_ptr<Adapter> adapter, Socket socket);
  void let_in();
  // False: the guest is to go.
  bool on_hello(Guest& guest, const Message& hello, Result& result);
  bool advance(Guest& guest, std::unique_ptr<ReceiveComm>& made, Result& result);

  std::shared_ptr<Context> context_;
  std::shared_ptr<Adapter> adapter_;
  Socket socket_;
  std::uint64_t cookie_;
  std::list<Guest> guests_;
  bool stranger_told_ = false;
};

}  // namespace mrc::nccl
