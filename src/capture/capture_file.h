// Frames out of a capture file: pcapng, or the older pcap, of either byte order.
//
// The bytes are anybody's. What does not fit ends the reading with a problem; what came before it
// counts. Nothing is copied: frames are views into the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace mrc::capture {

// What a frame begins with. The numbers are those of the files (LINKTYPE_...).
enum class LinkType : std::uint16_t {
  kNull = 0,  // four bytes of address family
  kEthernet = 1,
  kRaw = 101,  // IP
  kCooked = 113,
  kCooked2 = 276,
};

struct CapturedFrame {
  std::uint16_t link = 0;  // a LinkType, or one that we do not know
  bool whole = true;       // all of its bytes are in the file
  std::span<const std::byte> bytes;
};

class CaptureFile {
 public:
  explicit CaptureFile(std::span<const std::byte> file);

  // The next frame; false at the end, or where the file is damaged.
  bool next(CapturedFrame& frame);

  // What is wrong with the file, with the position; empty while nothing is.
  const std::string& problem() const { return problem_; }

 private:
  enum class Kind : std::uint8_t { kNone, kPcap, kPcapng };

  std::uint32_t u32(std::size_t at) const;
  std::uint16_t u16(std::size_t at) const;
  std::size_t left() const { return file_.size() - at_; }
  bool fail(const char* what);
  bool next_in_pcap(CapturedFrame& frame);
  bool next_in_pcapng(CapturedFrame& frame);
  bool begin_section();
  bool read_enhanced(std::size_t body, std::size_t length, CapturedFrame& frame);
  bool read_simple(std::size_t body, std::size_t length, CapturedFrame& frame);

  std::span<const std::byte> file_;
  std::size_t at_ = 0;
  Kind kind_ = Kind::kNone;
  bool big_endian_ = false;
  std::uint16_t pcap_link_ = 0;
  std::vector<std::uint16_t> links_;  // of the section's interfaces
  std::string problem_;
};

}  // namespace mrc::capture
