// What a process tells of itself while it runs: one page of fixed size per process and device, in
// shared memory. telemetry_writer.h writes pages, telemetry_reader.h reads those of everybody.
//
// All values are plain numbers in the order of the host. Counters only grow while the process runs;
// whoever wants a rate takes the difference of two pages and of their times. What is listed (queue
// pairs, paths) is bounded: the busiest come first, and a number beside says how many there are.
//
// The layout has a version. A reader refuses every other one, so that it never takes a field for
// another; it changes with every change below, of core::QpCounters and of DropReason.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/result.h"
#include "base/types.h"
#include "core/counters.h"
#include "core/event.h"
#include "wire/ip_address.h"

namespace mrc::node {

inline constexpr std::uint32_t kTelemetryLayout = 1;
inline constexpr std::size_t kTelemetryEngines = 16;
inline constexpr std::size_t kTelemetryQueuePairs = 64;
inline constexpr std::size_t kTelemetryPaths = 32;
static_assert(kDropReasonCount == 37 && sizeof(core::QpCounters) == 22 * sizeof(std::uint64_t),
              "raise kTelemetryLayout");

// A text that fits, with a zero behind it.
template <std::size_t kBytes>
struct TelemetryText {
  std::array<char, kBytes> bytes{};

  void set(std::string_view text) {
    bytes = {};
    std::memcpy(bytes.data(), text.data(), text.size() < kBytes ? text.size() : kBytes - 1);
  }
  std::string text() const { return {bytes.data(), ::strnlen(bytes.data(), kBytes)}; }
};

struct TelemetryAddress {
  std::array<std::uint8_t, 16> bytes{};
  std::uint64_t is_v4 = 0;

  static TelemetryAddress of(const wire::IpAddress& address) {
    return {.bytes = address.bytes, .is_v4 = address.is_v4 ? 1U : 0U};
  }
  wire::IpAddress address() const { return {.bytes = bytes, .is_v4 = is_v4 != 0}; }
};

// Durations by powers of two: bucket i holds those of up to bound_ns(i) that the one before it does
// not hold, the last one all that are longer than 17 seconds.
struct TelemetryHistogram {
  static constexpr unsigned kFirstBits = 10;  // about 1 us
  static constexpr std::size_t kBuckets = 26;

  std::uint64_t sum_ns = 0;
  std::array<std::uint64_t, kBuckets> buckets{};

  static constexpr std::uint64_t bound_ns(std::size_t bucket) {
    return std::uint64_t{1} << (kFirstBits + bucket);
  }
  static constexpr std::size_t bucket_of(std::uint64_t ns) {
    const auto bits = ns == 0 ? 0U : static_cast<unsigned>(std::bit_width(ns - 1));
    const std::size_t bucket = bits <= kFirstBits ? 0 : bits - kFirstBits;
    return bucket < kBuckets ? bucket : kBuckets - 1;
  }
  void add(DurationNs duration) {
    const auto ns = static_cast<std::uint64_t>(duration < 0 ? 0 : duration);
    sum_ns += ns;
    ++buckets[bucket_of(ns)];
  }
  void add(const TelemetryHistogram& more) {
    sum_ns += more.sum_ns;
    for (std::size_t i = 0; i < kBuckets; ++i)
      buckets[i] += more.buckets[i];
  }
  std::uint64_t count() const {
    std::uint64_t all = 0;
    for (const std::uint64_t bucket : buckets)
      all += bucket;
    return all;
  }
};

// By core::EvState.
using TelemetryPathCounts = std::array<std::uint32_t, core::kEvStateCount>;

struct TelemetryProcess {
  std::uint64_t pid = 0;
  std::uint64_t start_ticks = 0;  // field 22 of /proc/PID/stat: tells it from a later one
  std::int64_t started_unix_ns = 0;
  std::uint64_t cpu_ns = 0;  // of all its threads
  TelemetryText<32> name;
};

struct TelemetryEngine {
  std::uint64_t cpu_ns = 0;  // of its thread; program threads that poll do its work, too
  std::uint64_t queue_pairs = 0;
};

struct TelemetryPlane {
  std::uint32_t port = 0;     // from 1; people are told the plane (base/plane.h)
  std::uint32_t enabled = 0;  // by the controller
  std::uint32_t link_up = 0;
  std::uint32_t silent = 0;  // queue pairs whose peer does not answer on it
  TelemetryText<16> interface;
  TelemetryAddress address;
  std::uint64_t packets_sent = 0;
  std::uint64_t bytes_sent = 0;
  std::uint64_t packets_received = 0;
  std::uint64_t bytes_received = 0;
  std::uint64_t lost = 0;          // packets that were declared lost on its paths
  std::uint64_t marked = 0;        // answers that told of congestion on its paths
  std::uint64_t link_changes = 0;  // up and down
  TelemetryPathCounts paths{};

  std::uint32_t plane() const { return port - 1; }
};

// Calls into the kernel, and what they refused.
struct TelemetryNetwork {
  std::uint64_t send_calls = 0;
  std::uint64_t receive_calls = 0;
  std::uint64_t send_refused = 0;
  std::uint64_t receive_overflow = 0;
  std::uint64_t answers_dropped = 0;  // no room or no way out
};

struct TelemetryQueuePair {
  std::uint32_t number = 0;
  std::uint32_t remote_number = 0;
  std::uint32_t state = 0;  // core::QpState
  std::uint32_t packets_in_flight = 0;
  std::uint32_t packets_to_resend = 0;
  std::uint32_t messages_outstanding = 0;
  TelemetryAddress peer;
  core::QpCounters counters;           // since it was made or reset
  std::uint64_t bytes_per_second = 0;  // both ways, lately
  std::uint64_t window_bytes = 0;      // queue pairs to one peer may share it
  std::uint64_t window_used_bytes = 0;
  std::uint64_t round_trip_ns = 0;  // smoothed
  TelemetryPathCounts paths{};
};

// A path (EV) of a queue pair that is not good.
struct TelemetryPath {
  std::uint32_t queue_pair = 0;
  std::uint32_t port = 0;
  std::uint32_t entropy = 0;
  std::uint32_t state = 0;  // core::EvState
  std::uint32_t lost = 0;
  std::uint32_t marked = 0;

  std::uint32_t plane() const { return port - 1; }
};

struct TelemetryBody {
  std::int64_t written_unix_ns = 0;  // when the look began: counts are not older than that
  std::int64_t written_ns = 0;       // the same, as os::monotonic_now()
  TelemetryProcess process;
  TelemetryText<64> device;
  TelemetryAddress gid;
  std::uint64_t path_mtu = 0;
  std::uint64_t port_bits_per_second = 0;
  std::uint64_t sweeps = 0;    // how often the page was written
  std::uint64_t sweep_ns = 0;  // and the processor time it took in all
  std::uint32_t engine_count = 0;
  std::uint32_t plane_count = 0;
  std::uint32_t listed_queue_pairs = 0;
  std::uint32_t listed_paths = 0;
  std::uint64_t queue_pairs = 0;      // alive, listed or not
  std::uint64_t failed_messages = 0;  // completed with an error
  core::QpCounters traffic;           // of all queue pairs, also those that are gone
  TelemetryNetwork network;
  std::array<std::uint64_t, kDropReasonCount> drops{};  // by DropReason; 0 counts packets used
  TelemetryHistogram round_trips;  // smoothed, of each queue pair that moved, each sweep
  TelemetryHistogram latencies;    // of messages, from their post to their completion
  std::array<TelemetryEngine, kTelemetryEngines> engines{};
  std::array<TelemetryPlane, kMaxPorts> planes{};  // [0, plane_count)
  std::array<TelemetryPath, kTelemetryPaths> paths{};
  std::array<TelemetryQueuePair, kTelemetryQueuePairs> list{};  // the busiest first
};

// Two bodies take turns, so that one is whole at every moment, also of a process that was killed.
struct TelemetryHeader {
  static constexpr std::uint64_t kMagic = 0x4D52'4354'454C'4531;

  std::uint64_t magic = 0;
  std::uint32_t layout = 0;
  std::uint32_t body_bytes = 0;
  std::uint64_t version = 0;  // body version % 2 is whole; 0: none is yet
  std::array<std::uint64_t, 5> reserved{};
};

static_assert(std::is_trivially_copyable_v<TelemetryBody> && sizeof(TelemetryHeader) == 64 &&
              std::has_unique_object_representations_v<TelemetryBody>);
inline constexpr std::size_t kTelemetryPageBytes =
    sizeof(TelemetryHeader) + 2 * sizeof(TelemetryBody);

// Where body `version` stands in a page.
constexpr std::size_t telemetry_body_at(std::uint64_t version) {
  return sizeof(TelemetryHeader) + version % 2 * sizeof(TelemetryBody);
}

// The newest whole body of a page that anybody may have written: lists are within their bounds,
// states are ones there are, texts can be shown. kUnsupported: of another version of OpenMRC;
// kBusy: nothing has been written yet; kInvalidArgument: no page.
Status decode_telemetry(std::span<const std::byte> page, TelemetryBody& out);

}  // namespace mrc::node
