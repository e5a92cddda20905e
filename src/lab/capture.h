// Frames of some links in a file that Wireshark opens (pcapng, one interface per link). Times count
// from the start of the lab. Nothing more is written when the file has reached its limit.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/network.h"
#include "sim/pcapng.h"

namespace mrc::lab {

struct CaptureOptions {
  std::string file;
  std::uint32_t snap_bytes = 0;  // of each frame; 0 = all
  std::uint64_t max_bytes = std::uint64_t{1} << 30;
};

// The file. One that was made has its header and can be read at any time.
class CaptureFile {
 public:
  // Throws InputError when it cannot be written.
  CaptureFile(const fabric::Topology& topology, std::span<const LinkId> links,
              const CaptureOptions& options);
  CaptureFile(const CaptureFile&) = delete;
  CaptureFile& operator=(const CaptureFile&) = delete;

  void add(LinkId link, Picoseconds at, std::span<const std::byte> frame);
  void flush();
  // Writes what is left. InputError when something could not be written, or was left out since the
  // file has reached its limit.
  std::uint64_t finish();

 private:
  bool full() const { return bytes_ >= options_.max_bytes; }

  CaptureOptions options_;
  std::ofstream out_;
  std::optional<sim::PcapngWriter> writer_;
  std::map<LinkId, std::uint32_t> interfaces_;
  std::uint64_t frames_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t left_out_ = 0;
  int error_ = 0;  // of the first write that failed; none after it
};

// What leaves on links of a network of ours.
class Capture final : public Tap {
 public:
  // Throws InputError when the file cannot be written or another capture has one of the links.
  Capture(Network& network, std::span<const LinkId> links, const CaptureOptions& options);
  ~Capture() override;
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  void on_frame(LinkId link, Picoseconds at, std::span<const std::byte> frame) override {
    file_.add(link, at, frame);
  }
  void flush() { file_.flush(); }
  std::uint64_t finish() { return file_.finish(); }

 private:
  Network* network_;
  std::vector<LinkId> links_;
  CaptureFile file_;
};

}  // namespace mrc::lab
