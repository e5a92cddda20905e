#include "core/cc/none.h"

namespace mrc::core {

void NoCongestionControl::on_packet_sent(TimeNs, std::int64_t) {}

void NoCongestionControl::on_ack(const AckSample& sample) {
  if (sample.rtt_ns && *sample.rtt_ns > 0) base_rtt_.observe(*sample.rtt_ns);
}

void NoCongestionControl::on_trim(TimeNs, std::int64_t, bool) {}

void NoCongestionControl::on_loss(TimeNs, std::int64_t) {}

void NoCongestionControl::set_bandwidth(std::uint64_t) {}

}  // namespace mrc::core
