#include "lab/capture.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "fabric/input_error.h"

namespace mrc::lab {

Capture::Capture(Network& network, std::span<const LinkId> links, const CaptureOptions& options)
    : network_(&network), options_(options) {
  for (const LinkId link : links) {
    if (network.watched(link)) {
      throw fabric::InputError("another capture has " + link_name(network.topology(), link));
    }
  }
  out_.open(options_.file, std::ios::binary | std::ios::trunc);
  if (!out_) throw fabric::InputError(options_.file + ": " + std::strerror(errno));
  writer_.emplace(out_);
  for (const LinkId link : links) {
    interfaces_[link] =
        writer_->add_interface(link_name(network.topology(), link), options_.snap_bytes);
    network.watch(link, this);
    links_.push_back(link);
  }
  out_.flush();
}

Capture::~Capture() {
  for (const LinkId link : links_)
    network_->watch(link, nullptr);
}

void Capture::on_frame(LinkId link, Picoseconds at, std::span<const std::byte> frame) {
  if (full()) return;
  const std::size_t kept = options_.snap_bytes == 0
                               ? frame.size()
                               : std::min<std::size_t>(frame.size(), options_.snap_bytes);
  writer_->add_packet(interfaces_.at(link), at, frame.first(kept),
                      static_cast<std::uint32_t>(frame.size()));
  ++frames_;
  bytes_ += kept;
}

}  // namespace mrc::lab
