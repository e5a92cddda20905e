// What a rank needs of a network: to send to the next rank and to receive from the one before, many
// requests at a time, none of which blocks. Modelled on NCCL's plug-in interface, so that the same
// loop drives our plug-in and plain TCP.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "link.h"

namespace mrc::bench {

struct RankSetting {
  int rank = 0;
  int ranks = 2;
  std::string directory;  // where ranks meet
  std::string plugin;     // file; empty: TCP
  int next() const { return (rank + 1) % ranks; }
  int previous() const { return (rank + ranks - 1) % ranks; }
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Memory that requests lie in. Once each.
  virtual void use(std::span<std::byte> out, std::span<std::byte> in) = 0;
  // nullptr: not now.
  virtual void* send(std::span<std::byte> bytes) = 0;
  virtual void* receive(std::span<std::byte> bytes) = 0;
  // Whether it is done, which ends it. Makes progress.
  virtual bool test(void* request) = 0;
};

std::unique_ptr<Transport> open_plugin(const RankSetting& setting, const test::Meeting& meeting);
std::unique_ptr<Transport> open_tcp(const RankSetting& setting, const test::Meeting& meeting);

}  // namespace mrc::bench
