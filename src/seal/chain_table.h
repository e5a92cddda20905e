// The chains that a receiver hears of, each with its replay window and its keys.
//
// Bounded: the one that was silent for longest makes room, and of it only the highest packet number
// is remembered, above which it may go on. That memory is bounded as well (kMostForgotten); see
// docs/adr/0025-sealed-packets.md for what that means.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>

#include "seal/key_ring.h"
#include "seal/replay_window.h"
#include "seal/traffic_keys.h"

namespace mrc::seal {

struct ChainId {
  Gid source;
  std::uint64_t instance = 0;
  std::uint64_t key = 0;  // KeyRing::Key::identity: numbers of keys are used again
  Suite suite = Suite::kAes128Gcm;
  friend bool operator==(const ChainId&, const ChainId&) = default;
};

struct ChainHash {
  // Instances are random, and nobody without the cluster key can choose one.
  std::size_t operator()(const ChainId& id) const { return id.instance; }
};

struct Chain {
  ReplayWindow window;
  std::optional<TrafficKeys> keys;  // derived when a whole packet comes
};

class ChainTable {
 public:
  static constexpr std::size_t kMostChains = 1'024;
  static constexpr std::size_t kMostForgotten = 16'384;

  ChainTable();

  // Null: never seen, or forgotten.
  [[nodiscard]] Chain* find(const ChainId& id);
  // Of a forgotten one, the highest packet number seen.
  [[nodiscard]] std::optional<std::uint64_t> forgotten(const ChainId& id) const;

  // For a chain that find() does not know. Allocates.
  Chain& add(const ChainId& id);
  // It was heard from: others make room first.
  void touch(Chain& chain);
  // All keys go; what was seen stays known.
  void drop_keys();

  std::size_t size() const { return index_.size(); }
  // Whether any chain is of that sender. Looks at all of them.
  [[nodiscard]] bool has_source(const Gid& source) const;

 private:
  struct Entry : Chain {
    ChainId id;
    std::list<Entry>::iterator self;
  };
  void forget_oldest();
  void remember(const ChainId& id, std::uint64_t highest);

  // The one heard from last is first.
  std::list<Entry> chains_;
  std::unordered_map<ChainId, Entry*, ChainHash> index_;
  // In the order in which they were forgotten, the oldest first.
  struct Record {
    ChainId id;
    std::uint64_t highest = 0;
  };
  std::list<Record> records_;
  std::unordered_map<ChainId, std::list<Record>::iterator, ChainHash> record_index_;
};

}  // namespace mrc::seal
