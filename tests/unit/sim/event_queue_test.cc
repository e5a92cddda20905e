#include "sim/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "base/prng.h"

namespace mrc::sim {
namespace {

using Key = std::tuple<Time, std::uint32_t, std::uint32_t>;

Key key_of(const Event& event) { return {event.time, event.order, event.payload}; }

std::vector<Key> drain(EventQueue& queue) {
  std::vector<Key> keys;
  while (!queue.empty())
    keys.push_back(key_of(queue.pop()));
  return keys;
}

// Buckets of 1,024 ps, 256 of them: the ring reaches 262,144 ps.
constexpr unsigned kWidthBits = 10;
constexpr unsigned kCountBits = 8;
constexpr Time kReach = Time{1} << (kWidthBits + kCountBits);

// A time as simulations ask for them: now, in the open bucket, on the ring, at its rim, far away.
Time draw_time(Prng& prng, Time now) {
  switch (prng.below(6)) {
    case 0:
      return now;
    case 1:
      return now + prng.below(1 << kWidthBits);
    case 2:
      return now + prng.below(static_cast<std::uint32_t>(kReach));
    case 3:
      return now + kReach - 2'048 + prng.below(4'096);
    case 4:
      return now + Time{prng.below(1'000)} * kReach;
    default:
      return (now | ((Time{1} << kWidthBits) - 1)) + prng.below(2);  // the edge of a bucket
  }
}

TEST(EventQueue, AgreesWithASortedSetUnderRandomUse) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Prng prng(seed);
    EventQueue queue(kWidthBits, kCountBits);
    std::set<Key> reference;
    Time now = 0;
    for (std::uint32_t n = 0; n < 4'000; ++n) {
      // Fills up first, then empties.
      if (reference.empty() || prng.below(1'000) < (n < 2'000 ? 700u : 300u)) {
        const Event event(draw_time(prng, now), static_cast<EventKind>(prng.below(10)), n, n);
        queue.push(event);
        reference.insert(key_of(event));
      } else {
        const Event event = queue.pop();
        ASSERT_EQ(key_of(event), *reference.begin()) << "seed " << seed << ", operation " << n;
        reference.erase(reference.begin());
        now = event.time;
      }
      ASSERT_EQ(queue.size(), reference.size());
    }
    EXPECT_EQ(drain(queue), std::vector<Key>(reference.begin(), reference.end()));
  }
}

TEST(EventQueue, OrderDoesNotDependOnTheOrderOfInsertion) {
  Prng prng(7);
  std::vector<Event> events;
  for (std::uint32_t n = 0; n < 3'000; ++n)
    events.emplace_back(draw_time(prng, Time{prng.below(8)} * 5'000),
                        static_cast<EventKind>(prng.below(10)), n);
  EventQueue first(kWidthBits, kCountBits);
  for (const Event& event : events)
    first.push(event);
  const std::vector<Key> expected = drain(first);
  for (unsigned round = 0; round < 5; ++round) {
    for (auto i = static_cast<std::uint32_t>(events.size()); i > 1; --i)
      std::swap(events[i - 1], events[prng.below(i)]);
    EventQueue queue(kWidthBits, kCountBits);
    for (const Event& event : events)
      queue.push(event);
    EXPECT_EQ(drain(queue), expected);
  }
}

TEST(EventQueue, EventsOfOneTimeComeByKindThenBySubject) {
  EventQueue queue(kWidthBits, kCountBits);
  queue.push(Event(5'000, EventKind::kHostTimer, 1));
  queue.push(Event(5'000, EventKind::kArrival, 9));
  queue.push(Event(5'000, EventKind::kFault, 30));
  queue.push(Event(5'000, EventKind::kArrival, 2));
  std::vector<std::pair<EventKind, std::uint32_t>> order;
  while (!queue.empty()) {
    const Event event = queue.pop();
    order.emplace_back(event.kind(), event.subject());
  }
  const std::vector<std::pair<EventKind, std::uint32_t>> expected{{EventKind::kFault, 30},
                                                                  {EventKind::kArrival, 2},
                                                                  {EventKind::kArrival, 9},
                                                                  {EventKind::kHostTimer, 1}};
  EXPECT_EQ(order, expected);
}

TEST(EventQueue, ALateEventComesBeforeTheRestOfTheOpenBucket) {
  EventQueue queue(kWidthBits, kCountBits);
  for (std::uint32_t n = 0; n < 4; ++n)
    queue.push(Event(2'048 + Time{n} * 100, EventKind::kArrival, n));
  EXPECT_EQ(queue.pop().subject(), 0u);
  queue.push(Event(2'050, EventKind::kArrival, 77));
  queue.push(Event(2'150, EventKind::kArrival, 78));
  std::vector<std::uint32_t> order;
  while (!queue.empty())
    order.push_back(queue.pop().subject());
  EXPECT_EQ(order, (std::vector<std::uint32_t>{77, 1, 78, 2, 3}));
}

TEST(EventQueue, UpcomingShowsWhatPopReturnsNextFromTheOpenBucket) {
  EventQueue queue(kWidthBits, kCountBits);
  for (std::uint32_t n = 0; n < 20; ++n)
    queue.push(Event(1'024 + Time{19 - n} * 10, EventKind::kArrival, n));
  EXPECT_EQ(queue.upcoming(0), nullptr);  // no bucket is open before the first pop
  (void)queue.pop();
  std::vector<Key> shown;
  for (std::size_t n = 0; queue.upcoming(n) != nullptr; ++n)
    shown.push_back(key_of(*queue.upcoming(n)));
  EXPECT_EQ(shown.size(), 19u);
  EXPECT_EQ(drain(queue), shown);
}

TEST(EventQueue, WaitsOutLongSilence) {
  EventQueue queue(kWidthBits, kCountBits);
  std::vector<Key> expected;
  for (std::uint32_t n = 0; n < 12; ++n) {
    const Event event(kReach * (Time{1} << (2 * n)) + n, EventKind::kHostTimer, n);
    queue.push(event);
    expected.push_back(key_of(event));
  }
  EXPECT_EQ(drain(queue), expected);
}

}  // namespace
}  // namespace mrc::sim
