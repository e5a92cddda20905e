// Completions: each request once, in posting order, with the right outcome; success only when the
// data is in the peer's memory.
#include <cinttypes>

#include "dst/carriage.h"
#include "dst/checker.h"
#include "dst/failure.h"
#include "dst/pattern.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

unsigned hex(QpNumber number) { return static_cast<unsigned>(number); }

std::uint64_t pattern_key(std::uint64_t seed, std::uint64_t local_address) {
  return mix64(seed ^ (local_address >> 32));
}

}  // namespace

void Checker::on_completion(Host& host, const core::Completion& completion) {
  ++completions_;
  const auto ref = world_.model.find(host.id(), completion.qp);
  MRC_CHECK(ref.has_value(), "host %u: completion of queue pair %06x, which does not exist",
            host.id(), hex(completion.qp));
  if (completion.kind == core::CompletionKind::kSend) {
    check_send_completion(*ref, completion);
  } else {
    check_receive_completion(*ref, completion);
  }
  world_.workload.on_completion(*ref, completion);
}

void Checker::check_send_completion(EndRef ref, const core::Completion& completion) {
  End& end = world_.model.end(ref);
  const Flow& flow = world_.model.outgoing(ref);
  const unsigned qp = hex(completion.qp);
  const bool success = completion.status == core::CompletionStatus::kSuccess;
  std::size_t number = end.next_report;
  while (number < flow.messages().size() && flow.messages()[number].request.id != completion.id) {
    MRC_CHECK(!flow.messages()[number].request.signaled,
              "queue pair %06x reports request %#" PRIx64 " before %#" PRIx64, qp, completion.id,
              flow.messages()[number].request.id);
    ++number;
  }
  MRC_CHECK(number < flow.messages().size(),
            "queue pair %06x reports request %#" PRIx64 " twice or was never given it", qp,
            completion.id);
  const core::SendRequest& request = flow.messages()[number].request;
  // What was passed over was not signaled, so it was successful unless an error came before.
  MRC_CHECK(!end.sends_failed || number == end.next_report,
            "queue pair %06x does not report a failed request that was not signaled", qp);
  if (success) {
    MRC_CHECK(!end.sends_failed, "queue pair %06x reports success after an error", qp);
    MRC_CHECK(request.signaled, "queue pair %06x reports a request that was not signaled", qp);
    MRC_CHECK(completion.length == request.length, "completion says %u bytes instead of %u",
              completion.length, request.length);
    verify_messages(ref, number + 1);
  } else {
    if (!end.sends_failed) verify_messages(ref, number);
    end.sends_failed = true;
    check_failure_allowed(ref, completion.status);
  }
  end.next_report = number + 1;
}

void Checker::check_receive_completion(EndRef ref, const core::Completion& completion) {
  End& end = world_.model.end(ref);
  const Flow& flow = world_.model.incoming(ref);
  const unsigned qp = hex(completion.qp);
  MRC_CHECK(!end.receives.empty() && end.receives.front() == completion.id,
            "queue pair %06x completes receive %#" PRIx64 " out of turn", qp, completion.id);
  end.receives.pop_front();
  if (completion.status != core::CompletionStatus::kSuccess) {
    MRC_CHECK(completion.status == core::CompletionStatus::kFlushed,
              "a receive of queue pair %06x ends with '%s'", qp,
              core::completion_status_name(completion.status));
    end.receives_failed = true;
    return check_failure_allowed(ref, completion.status);
  }
  MRC_CHECK(!end.receives_failed, "queue pair %06x delivers an immediate after an error", qp);
  MRC_CHECK(end.immediates_delivered < flow.immediates().size(),
            "queue pair %06x delivers an immediate nobody sent", qp);
  const std::size_t number = flow.immediates()[end.immediates_delivered];
  const core::SendRequest& request = flow.messages()[number].request;
  MRC_CHECK(completion.immediate == request.immediate && completion.length == request.length,
            "queue pair %06x delivers immediate %#x length %u instead of %#x length %u", qp,
            completion.immediate, completion.length, request.immediate, request.length);
  ++end.immediates_delivered;
  ++immediates_;
  verify_messages(ref.peer(), number + 1);
}

// All messages in front of `end` have arrived and are in the peer's memory.
void Checker::verify_messages(EndRef from, std::size_t end) {
  const Flow& flow = world_.model.outgoing(from);
  std::size_t first = end;
  while (first > 0 && !flow.messages()[first - 1].verified)
    --first;
  for (std::size_t number = first; number < end; ++number)
    check_message_in_memory(from, number);
}

void Checker::check_message_in_memory(EndRef from, std::size_t number) {
  Flow& flow = world_.model.outgoing(from);
  Message& message = flow.message(number);
  const core::SendRequest& request = message.request;
  const unsigned qp = hex(world_.model.end(from).config.number);
  MRC_CHECK(flow.message_arrived(number),
            "message %zu of queue pair %06x is called done, but only %u of %u packets arrived",
            number, qp, message.arrived, message.packet_count);
  message.verified = true;
  if (request.length == 0) return;
  const End& target = world_.model.end(from.peer());
  const auto bytes =
      world_.hosts[target.host]->memory().bytes(request.remote_address, request.length);
  const std::uint64_t key = pattern_key(world_.stage.swarm.seed, request.local_address);
  const std::size_t wrong = first_difference(key, 0, bytes);
  MRC_CHECK(wrong == bytes.size(), "message %zu of queue pair %06x: byte %zu of %zu is wrong",
            number, qp, wrong, bytes.size());
}

// The first error of an end says why; everything after it is flushed.
void Checker::check_failure_allowed(EndRef ref, core::CompletionStatus status) {
  using core::CompletionStatus;
  Connection& connection = world_.model.connection(ref.connection);
  End& end = connection.ends[ref.side];
  end.state = EndState::kFailed;
  const unsigned qp = hex(end.config.number);
  MRC_CHECK(connection.doomed(), "queue pair %06x fails with '%s' without a cause", qp,
            core::completion_status_name(status));
  if (status == CompletionStatus::kFlushed) return;
  MRC_CHECK(!end.error_reported, "queue pair %06x gives a second reason for its failure: '%s'", qp,
            core::completion_status_name(status));
  end.error_reported = true;
  bool entitled = false;
  switch (status) {
    case CompletionStatus::kRetryExceeded:
      entitled = connection.doomed_by(Doom::kRetries);
      world_.stage.count(Fault::kRetryExhaustion);
      check_retries_used_up(ref);
      break;
    case CompletionStatus::kRemoteAccess:
    case CompletionStatus::kRemoteInvalidRequest:
      // A peer that is gone has said why, as far as anybody can tell.
      entitled =
          (status == CompletionStatus::kRemoteAccess && connection.doomed_by(Doom::kAccess)) ||
          !end.attacked_packets.empty();
      break;
    case CompletionStatus::kReceiveMissing:
      entitled = connection.doomed_by(Doom::kReceiveMissing);
      break;
    case CompletionStatus::kRemoteOperation:
      entitled = true;
      break;
    default:
      break;
  }
  MRC_CHECK(entitled, "queue pair %06x fails with '%s', which nothing explains", qp,
            core::completion_status_name(status));
}

}  // namespace mrc::dst
