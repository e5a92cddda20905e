// Fixed array, ring, slot index and timer heap against the standard containers.
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/fixed_array.h"
#include "base/prng.h"
#include "base/ring.h"
#include "base/slot_index.h"
#include "base/timer_heap.h"

namespace mrc {
namespace {

TEST(FixedArray, HandsItsItemsOverAndKeepsToItsLength) {
  FixedArray<int> array(3, 7);
  array[2] = 9;
  FixedArray<int> other(2);
  other = std::move(array);
  EXPECT_EQ(other.size(), 3U);
  EXPECT_EQ(other[0], 7);
  EXPECT_EQ(other[2], 9);
  EXPECT_DEATH(other[3] = 1, "");
  EXPECT_TRUE(FixedArray<int>().empty());
}

TEST(Ring, AgreesWithADequeAndRefusesWhenFull) {
  Ring<int> ring(7);
  std::deque<int> model;
  Prng prng(1);
  for (int step = 0; step < 10'000; ++step) {
    if (prng.below(2) == 0) {
      EXPECT_EQ(ring.push_back(step), model.size() < 7);
      if (model.size() < 7) model.push_back(step);
    } else if (!model.empty()) {
      EXPECT_EQ(ring.front(), model.front());
      ring.pop_front();
      model.pop_front();
    }
    ASSERT_EQ(ring.size(), model.size());
    for (std::size_t i = 0; i < model.size(); ++i)
      ASSERT_EQ(ring.at(i), model[i]);
  }
}

struct FewHomes {  // makes long probe chains
  std::uint64_t operator()(std::uint32_t key) const { return key % 5; }
};

TEST(SlotIndex, KeepsProbeChainsWholeWhenEntriesAreErased) {
  SlotIndex<std::uint32_t, FewHomes> index(64);
  std::unordered_map<std::uint32_t, std::uint32_t> model;
  Prng prng(2);
  for (std::uint32_t step = 0; step < 20'000; ++step) {
    const std::uint32_t key = prng.below(100);
    if (model.count(key) != 0) {
      index.erase(key);
      model.erase(key);
    } else if (model.size() < 64) {
      index.insert(key, step);
      model[key] = step;
    }
    for (std::uint32_t k = 0; k < 100; ++k) {
      const auto found = model.find(k);
      ASSERT_EQ(index.find(k), found == model.end() ? 0xFFFF'FFFF : found->second);
    }
  }
}

TEST(TimerHeap, AlwaysKnowsTheEarliestDeadline) {
  TimerHeap heap(50);
  std::map<std::uint32_t, TimeNs> model;
  Prng prng(3);
  for (int step = 0; step < 20'000; ++step) {
    const std::uint32_t slot = prng.below(50);
    if (prng.below(4) == 0) {
      heap.set(slot, kNever);
      model.erase(slot);
    } else {
      const TimeNs deadline = prng.below(1000);
      heap.set(slot, deadline);
      model[slot] = deadline;
    }
    TimeNs earliest = kNever;
    for (const auto& [s, t] : model)
      earliest = std::min(earliest, t);
    ASSERT_EQ(heap.earliest(), earliest);
    if (earliest != kNever) {
      ASSERT_EQ(model.at(heap.earliest_slot()), earliest);
    }
  }
}

}  // namespace
}  // namespace mrc
