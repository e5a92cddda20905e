// What a rank does in each test. A scenario that comes back has passed; otherwise die() was called.
#pragma once

#include <string>

#include "driver.h"

namespace mrc::test {

struct Setting {
  std::string plugin;
  int version = 11;
  int rank = 0;
  int ranks = 2;
  std::string directory;
};

// Two ranks: messages of 0 bytes to 64 MiB in both directions, many at a time.
void all_sizes(const Setting& setting);
// Two ranks: grouped receives, sends in another order than the receives have.
void groups(const Setting& setting);
// Two ranks: several connections, each with a thread of its own; the main thread sets up and
// closes.
void many_threads(const Setting& setting);
// Two ranks: rank 0 closes with everything under way; then a new connection works.
void abort_in_flight(const Setting& setting);
// Two ranks: rank 1 is killed in the middle; rank 0 is told.
void peer_killed(const Setting& setting);
// Two ranks: a message longer than its receive.
void too_long(const Setting& setting);
// Two ranks: the receiver closes as soon as it has its data; the sender's requests still finish.
void close_early(const Setting& setting);
// Any number of ranks: all-reduce around a ring.
void ring(const Setting& setting);
// One rank: nonsense in, errors out.
void bad_input(const Setting& setting);
// One rank: init fails with a reason, and finalize does no harm.
void no_device(const Setting& setting);
// Two ranks that would lose each other's packets: both refuse, and both logs say CAUSE.
void refused_peer(const Setting& setting);
// One rank, the library by its old file name: the old network's name and a warning, once.
void old_name(const Setting& setting);
// Two ranks: everything from loading to unloading, many times in one process, as NCCL 2.28 does it
// when communicators come and go: after the first time it has forgotten the name.
void reload(const Setting& setting);
// One rank: a child leaves everything alone.
void after_fork(const Setting& setting);
// Two ranks: prints GB/s and latency; for people.
void bandwidth(const Setting& setting);
// Takes ports away and gives them back until the file "stop" exists.
void ports(const Setting& setting);

}  // namespace mrc::test
