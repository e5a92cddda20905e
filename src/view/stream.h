// Frames as lines of text: what a page reads, from whatever source.
//
// A stream is a header line, then frames and packets, then (unless it is live) an end line. Lines
// are JSON, at most kMaxLineBytes, without newlines inside; docs/view.md lists their members. A
// frame tells only the lanes that changed since the frame before; every kKeyFrameEvery-th tells all
// that are not idle and healthy, and a reader may begin there.
//
// A recording is these lines with a newline after each, up to kMaxRecordingBytes. Its end line
// counts the lines before it, so a file that was cut short, or into which another one was copied,
// is found out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/host.h"
#include "view/frame.h"
#include "view/geometry.h"

namespace mrc::view {

inline constexpr unsigned kStreamVersion = 2;
inline constexpr unsigned kOldestStreamVersion = 1;  // that is read; it has no senders
inline constexpr std::size_t kMaxLineBytes = 1 << 22;
inline constexpr std::size_t kMaxRecordingBytes = std::size_t{256} << 20;
inline constexpr unsigned kKeyFrameEvery = 32;

// Takes the lines, in order.
using LineSink = std::function<void(std::string line)>;

struct StreamInfo {
  std::string source;  // "sim", "lab", "host"
  std::string title;   // for people
  bool live = false;   // more will come; otherwise an end line does
  bool acts = false;   // links can be broken and healed through it
  std::vector<Channel> counters;
  std::vector<Channel> gauges;
  std::uint64_t flows = 0;  // that are expected in all; 0: nobody knows
  std::string command;      // that makes the same again; may be empty
};

// One packet that begins to cross a lane, or is lost at its end.
struct PacketMove {
  enum class Fate : std::uint8_t { kMoves, kTrimmed, kQueueFull, kLinkDown, kRandomLoss, kNoRoute };

  Nanoseconds at = 0;
  LaneId lane{};
  std::uint32_t source = 0;  // hosts
  std::uint32_t destination = 0;
  std::uint32_t bytes = 0;
  Fate fate = Fate::kMoves;
  bool control = false;
  bool cut = false;  // its payload was trimmed
  bool marked = false;
  bool again = false;  // a retransmission
};

class StreamWriter {
 public:
  static constexpr std::size_t kMaxBadPaths = 32;  // that are named, of a queue pair

  // What is drawn, as the member "geometry" of the header tells it.
  struct Drawn {
    std::uint32_t lanes = 0;
    std::function<void(JsonLine&)> write;
  };

  explicit StreamWriter(Drawn drawn) : drawn_(std::move(drawn)) {}
  // The geometry outlives the writer.
  explicit StreamWriter(const Geometry& geometry)
      : StreamWriter(Drawn{.lanes = geometry.lane_count(),
                           .write = [&geometry](JsonLine& line) { geometry.write(line); }}) {}

  std::string header(const StreamInfo& info);
  // Frames in order of time.
  std::string frame(const Frame& frame);
  // In any order of time, as they come.
  std::string packets(std::span<const PacketMove> moves);
  // Queue pairs of a simulated host that send, and their paths by plane and state.
  std::string senders(std::uint32_t host, Nanoseconds at,
                      std::span<const sim::SenderStatus> senders);
  // `note`: one line for people, such as why it ends early; may be empty.
  std::string end(Nanoseconds at, std::string_view note);

  // The next frame will tell everything.
  void restart() { since_key_ = kKeyFrameEvery; }

 private:
  void write_lanes(JsonLine& line, const Frame& frame);
  void write_tallies(JsonLine& line, const Frame& frame);

  Drawn drawn_;
  std::vector<Lane> told_;
  std::vector<LaneTally> told_tallies_;
  unsigned since_key_ = kKeyFrameEvery;
  std::uint64_t lines_ = 0;
};

// A recording, looked at before it is served: one line that says what is wrong with it, or nothing.
struct RecordingCheck {
  std::string problem;
  std::uint64_t lines = 0;
  bool ok() const { return problem.empty(); }
};
RecordingCheck parse_recording(std::string_view text);

}  // namespace mrc::view
