#include "sim/pcapng_capture.h"

#include <algorithm>
#include <map>

#include "fabric/fault_plan.h"
#include "fabric/input_error.h"
#include "sim/pcapng.h"
#include "sim/pcapng_frame.h"

namespace mrc::sim {

std::vector<fabric::LinkId> parse_links(const std::string& text, const fabric::Topology& topology) {
  try {
    return fabric::parse_fault(text + " down @0", topology).links;
  } catch (const fabric::InputError&) {
    throw fabric::InputError("'" + text +
                             "' names no link; write t0:3>t1:5/plane:0, t0:3/t1:5/plane:0 for both "
                             "directions, host:7/plane:0, or * for a number");
  }
}

void Capture::on_packet(Time now, fabric::LinkId link, const PacketHead& head,
                        const PacketBody& body) {
  if (records_.size() == options_.max_packets) {
    ++left_out_;
    return;
  }
  records_.push_back({now, link, head, body});
}

void Capture::write(std::ostream& out) {
  std::stable_sort(records_.begin(), records_.end(),
                   [](const Record& a, const Record& b) { return a.at < b.at; });
  PcapngWriter writer(out);
  std::map<std::uint32_t, std::uint32_t> interfaces;
  for (const fabric::LinkId link : options_.links)
    interfaces[fabric::index(link)] =
        writer.add_interface(fabric::link_name(routing_.topology(), link), options_.snap_bytes);
  for (const Record& record : records_) {
    const std::vector<std::byte> frame =
        frame_on_link(config_, routing_, record.link, record.head, record.body);
    const std::size_t kept = options_.snap_bytes == 0
                                 ? frame.size()
                                 : std::min<std::size_t>(frame.size(), options_.snap_bytes);
    writer.add_packet(interfaces.at(fabric::index(record.link)), record.at,
                      std::span(frame).first(kept), static_cast<std::uint32_t>(frame.size()));
  }
}

}  // namespace mrc::sim
