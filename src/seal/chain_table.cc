#include "seal/chain_table.h"

#include <algorithm>

namespace mrc::seal {

ChainTable::ChainTable() {
  // So that no packet waits for the table to grow.
  index_.reserve(kMostChains);
}

Chain* ChainTable::find(const ChainId& id) {
  const auto found = index_.find(id);
  return found == index_.end() ? nullptr : found->second;
}

std::optional<std::uint64_t> ChainTable::forgotten(const ChainId& id) const {
  const auto found = record_index_.find(id);
  if (found == record_index_.end()) return std::nullopt;
  return found->second->highest;
}

Chain& ChainTable::add(const ChainId& id) {
  if (index_.size() == kMostChains) forget_oldest();
  Entry& entry = chains_.emplace_front();
  entry.id = id;
  entry.self = chains_.begin();
  const auto record = record_index_.find(id);
  if (record != record_index_.end()) {
    entry.window = ReplayWindow(record->second->highest);
    records_.erase(record->second);
    record_index_.erase(record);
  }
  index_.emplace(id, &entry);
  return entry;
}

void ChainTable::touch(Chain& chain) {
  const auto self = static_cast<Entry&>(chain).self;
  if (self != chains_.begin()) chains_.splice(chains_.begin(), chains_, self);
}

void ChainTable::drop_keys() {
  for (Entry& chain : chains_)
    chain.keys.reset();
}

bool ChainTable::has_source(const Gid& source) const {
  return std::any_of(chains_.begin(), chains_.end(),
                     [&source](const Entry& chain) { return chain.id.source == source; });
}

void ChainTable::forget_oldest() {
  const Entry& oldest = chains_.back();
  remember(oldest.id, oldest.window.highest());
  index_.erase(oldest.id);
  chains_.pop_back();
}

void ChainTable::remember(const ChainId& id, std::uint64_t highest) {
  if (records_.size() == kMostForgotten) {
    record_index_.erase(records_.front().id);
    records_.pop_front();
  }
  records_.push_back({.id = id, .highest = highest});
  record_index_.emplace(id, std::prev(records_.end()));
}

}  // namespace mrc::seal
