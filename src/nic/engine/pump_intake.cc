#include "nic/engine/pump_intake.h"

#include "nic/queue_pair.h"

namespace mrc::nic {

void PumpIntake::take(QueuePairImpl& qp) {
  take_receives(qp);
  take_sends(qp);
}

void PumpIntake::take_receives(QueuePairImpl& qp) {
  for (const std::uint64_t end = qp.receives_posted(); qp.e.receives_taken != end;) {
    const std::uint32_t slot = qp.receive_slot_of(qp.e.receives_taken++);
    const core::ReceiveRequest request{.id = slot, .capacity = qp.receive(slot).capacity};
    if (state_.endpoint->post_receive(qp.number(), request).ok()) continue;
    results_.drain_completions();
    results_.flush_receive(qp, slot);
  }
}

void PumpIntake::take_sends(QueuePairImpl& qp) {
  for (const std::uint64_t end = qp.sends_posted(); qp.e.sends_taken != end;) {
    const std::uint32_t slot = qp.send_slot_of(qp.e.sends_taken++);
    const SendSlot& send = qp.send(slot);
    send.taken_at = state_.now;
    state_.packets_under_way += qp.packets_of(send);
    // All are signaled for the protocol: unsignaled ones end here, with their slot.
    const core::SendRequest request{.id = slot,
                                    .local_address = std::uint64_t{slot} << 32,
                                    .length = send.length,
                                    .remote_address = send.remote_address,
                                    .remote_key = Rkey{send.remote_key},
                                    .with_immediate = has_immediate(send.kind),
                                    .immediate = send.immediate,
                                    .signaled = true,
                                    .solicited = send.solicited,
                                    .into_receive = is_send(send.kind)};
    if (state_.endpoint->post_send(state_.now, qp.number(), request).ok()) continue;
    results_.drain_completions();
    results_.flush_send(qp, slot);
  }
}

void PumpIntake::forget_sends(QueuePairImpl& qp) {
  for (std::uint64_t count = qp.e.sends_done; count != qp.e.sends_taken; ++count)
    state_.packets_under_way -= qp.packets_of(qp.send(qp.send_slot_of(count)));
}

}  // namespace mrc::nic
