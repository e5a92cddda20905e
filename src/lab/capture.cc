#include "lab/capture.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/input_error.h"

namespace mrc::lab {

namespace {

// Before the file is made, which may be that of the other capture.
Network& unwatched(Network& network, std::span<const LinkId> links) {
  for (const LinkId link : links) {
    if (network.watched(link))
      throw fabric::InputError("another capture has " + link_name(network.topology(), link));
  }
  return network;
}

}  // namespace

CaptureFile::CaptureFile(const fabric::Topology& topology, std::span<const LinkId> links,
                         const CaptureOptions& options)
    : options_(options) {
  out_.open(options_.file, std::ios::binary | std::ios::trunc);
  if (!out_) throw fabric::InputError(options_.file + ": " + std::strerror(errno));
  writer_.emplace(out_);
  for (const LinkId link : links)
    interfaces_[link] = writer_->add_interface(link_name(topology, link), options_.snap_bytes);
  flush();
}

void CaptureFile::flush() {
  if (error_ != 0) return;
  errno = 0;
  if (!out_.flush()) error_ = errno == 0 ? EIO : errno;
}

std::uint64_t CaptureFile::finish() {
  flush();
  if (error_ != 0)
    throw fabric::InputError(options_.file + ": cut short: " + std::strerror(error_));
  if (left_out_ > 0) {
    throw fabric::InputError(options_.file + ": full at " + std::to_string(options_.max_bytes) +
                             " bytes with " + std::to_string(frames_) + " frames; " +
                             std::to_string(left_out_) + " more were left out");
  }
  return frames_;
}

void CaptureFile::add(LinkId link, Picoseconds at, std::span<const std::byte> frame) {
  if (full() || error_ != 0) {
    ++left_out_;
    return;
  }
  errno = 0;
  const std::size_t kept = options_.snap_bytes == 0
                               ? frame.size()
                               : std::min<std::size_t>(frame.size(), options_.snap_bytes);
  writer_->add_packet(interfaces_.at(link), at, frame.first(kept),
                      static_cast<std::uint32_t>(frame.size()));
  if (!out_) error_ = errno == 0 ? EIO : errno;
  ++frames_;
  bytes_ += kept;
}

Capture::Capture(Network& network, std::span<const LinkId> links, const CaptureOptions& options)
    : network_(&unwatched(network, links)),
      links_(links.begin(), links.end()),
      file_(network.topology(), links, options) {
  for (const LinkId link : links_)
    network.watch(link, this);
}

Capture::~Capture() {
  for (const LinkId link : links_)
    network_->watch(link, nullptr);
}

}  // namespace mrc::lab
