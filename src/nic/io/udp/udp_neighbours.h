// Processes of one host that receive at the same UDP port (dialect `processes = "queue_pair"`).
//
// Each has a number, the top byte of its queue pair numbers, for which it listens at an abstract
// unix address: the kernel gives that to one process at a time and takes it back however the
// process ends. Their receive sockets are one SO_REUSEPORT group, in which a filter picks the
// socket at the position that the number says. Positions shift when a process ends, and bursts of
// strangers may hold packets for several processes: whoever gets a datagram that is not for it
// hands it to its owner, through a connection to that unix address. So the filter is there for
// speed, and every packet arrives without it too.
//
// Endpoint packets name no process. Requests about ports and all answers go to everybody; an EV
// probe is answered by whoever gets it.
//
// Connections are taken from processes of the same user or root's only, as the group takes members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "nic/io/backend.h"
#include "node/config.h"
#include "node/node_state_files.h"
#include "os/descriptor.h"
#include "os/socket_address.h"

namespace mrc::nic {

// What the kernel told about a datagram beside its bytes.
struct DatagramOrigin {
  os::SocketAddress from;
  PortId port{1};  // it came in through
  std::uint8_t traffic_byte = 0;
  std::uint16_t flow_label = 0;
};

class UdpNeighbours {
 public:
  // Takes the lowest free number and says which; -1 when there is none.
  int claim(const node::DeviceConfig& config);
  // The first plane has another address now, and whoever comes from now on looks for us there.
  // False when somebody was faster who has our number there: then each gets packets of the other's.
  bool follow(const node::DeviceConfig& config);
  // Of the numbers of this address, how many somebody holds who may not share it with us.
  unsigned held_by_strangers() const;

  // Becomes readable when a neighbour has handed us something.
  int descriptor() const { return epoll_.get(); }

  // Takes care of a datagram that came to our socket. False when it is not for us.
  bool keep(const DatagramOrigin& origin, std::span<const std::byte> datagram);

  // The next datagram that was handed to us: its bytes, a view that holds until the next call.
  // Empty when there is none.
  std::span<std::byte> take(DatagramOrigin& origin);

  // For packets on their way out, in order: false when the last one was for another process.
  bool next_is_for(ProcessNumber process) { return std::exchange(last_to_, process) == process; }

 private:
  // A child that outlives us keeps neither our name nor what others send us.
  using Link = node::node_files::LifeDescriptor;

  struct Neighbour {
    Link link;             // to hand on through
    TimeNs failed_at = 0;  // when it was last found not to be there; 0 = never
  };

  Link make_socket(unsigned number, bool listens) const;
  void use_address(const node::DeviceConfig& config);
  bool reach(unsigned number);
  void hand_to(unsigned number, const DatagramOrigin& origin, std::span<const std::byte> datagram);
  void accept_links();
  void forget(int link);
  bool read_link(int link, DatagramOrigin& origin, std::span<std::byte>& datagram);

  std::string prefix_;  // of the names of all numbers
  os::Descriptor epoll_;
  Link listener_;
  unsigned number_ = 0;
  std::vector<Neighbour> others_;  // by number
  std::vector<Link> links_;        // through which others hand to us
  std::vector<std::byte> buffer_;
  ProcessNumber last_to_ = 0;
};

// Makes the group of a receive socket choose by the number in the datagram. False where the kernel
// cannot.
bool choose_by_number(int socket);

}  // namespace mrc::nic
