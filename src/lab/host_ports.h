// The host ends of a lab's cables, whatever they are made of: frames of hosts come in here and
// frames for hosts leave.
//
// A port without carrier takes and gives nothing, and its host can see that. What a host sends is
// taken no faster than its port carries it.
//
// Not thread safe. Nothing blocks.
#pragma once

#include "lab/network.h"

namespace mrc::lab {

class HostPorts : public HostSide {
 public:
  void attach(Network& network) { network_ = &network; }

  // Readable when poll() has something to do.
  virtual int descriptor() const = 0;
  // Notes who has frames to read.
  virtual void poll() = 0;
  // Reads frames into the network as far as ports have room.
  virtual void read(Picoseconds now) = 0;
  // Sends what deliver() collected.
  virtual void flush() = 0;
  // Whether read() has something to do now; otherwise a port has to become free first.
  virtual bool can_read() const = 0;

  virtual void set_carrier(unsigned plane, unsigned host, bool up) = 0;
  // Processes that are connected, as far as one can tell.
  virtual unsigned connections(unsigned plane, unsigned host) const = 0;

 protected:
  Network& network() const { return *network_; }

 private:
  Network* network_ = nullptr;
};

}  // namespace mrc::lab
