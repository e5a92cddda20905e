#include "dst/workload.h"

#include <algorithm>
#include <cinttypes>

#include "dst/failure.h"
#include "dst/world.h"

namespace mrc::dst {

Workload::Workload(World& world)
    : world_(world), random_(world.stage.swarm.seed, Stream::kWorkload) {}

void Workload::start() {
  for (unsigned i = 0; i < world_.stage.swarm.connections; ++i)
    connect_random_pair();
}

void Workload::schedule_post(EndRef ref, DurationNs delay_ns) {
  Program& sender = program(ref);
  if (stopped_ || sender.post_scheduled || sender.retired || sender.packets_left == 0) return;
  sender.post_scheduled = true;
  world_.stage.queue.push(world_.stage.now + delay_ns, Happening::kPost, ref.connection, ref.side);
}

void Workload::on_post(EndRef ref) {
  Program& sender = program(ref);
  sender.post_scheduled = false;
  const End& end = world_.model.end(ref);
  Host& host = *world_.hosts[end.host];
  if (stopped_ || sender.retired || end.state != EndState::kLive || !host.alive()) return;
  std::uint32_t burst = random_.between(1, 8);
  while (burst != 0 && sender.packets_left != 0 && post_one(ref))
    --burst;
  host.pump();
  if (burst == 0) schedule_post(ref, random_.duration(0, sender.think_ns));
}

bool Workload::signaled_outstanding(EndRef ref) const {
  const Flow& flow = world_.model.connection(ref.connection).flows[ref.side];
  for (std::size_t i = world_.model.end(ref).next_report; i < flow.messages().size(); ++i) {
    if (flow.messages()[i].request.signaled) return true;
  }
  return false;
}

// The rules for programs: a bounded number of requests, no more immediates in flight than the peer
// can stash, and a receive for each of them.
bool Workload::may_post(EndRef ref, const Intent& intent) const {
  const Connection& connection = world_.model.connection(ref.connection);
  const End& end = connection.ends[ref.side];
  const Flow& flow = connection.flows[ref.side];
  const std::size_t outstanding = flow.messages().size() - end.next_report;
  if (outstanding >= program(ref).most_outstanding) return false;
  if (!intent.with_immediate) return true;
  const auto& immediates = flow.immediates();
  const auto reported = std::lower_bound(immediates.begin(), immediates.end(), end.next_report);
  const auto in_flight = static_cast<std::size_t>(immediates.end() - reported);
  return in_flight < end.rts.max_wimm &&
         immediates.size() < connection.ends[1 - ref.side].receives_posted;
}

// False when the program must wait for something.
bool Workload::post_one(EndRef ref) {
  Program& sender = program(ref);
  const Connection& connection = world_.model.connection(ref.connection);
  const std::uint32_t path_mtu = connection.ends[ref.side].rtr.path_mtu;
  Intent intent;
  intent.length = draw_length(sender, path_mtu);
  intent.with_immediate = random_.percent(sender.immediate_percent);
  intent.signaled = random_.percent(sender.signal_percent) || sender.unsignaled_streak >= 6;
  if (intent.with_immediate && !may_post(ref, intent)) intent.with_immediate = false;
  if (!may_post(ref, intent)) return false;
  std::uint64_t offset = 0;
  if (intent.length != 0) {
    const auto room = sender.ring.take(intent.length, random_);
    if (!room) {
      // Without a completion to come nobody would wake the program up: post a fence.
      if (signaled_outstanding(ref)) return false;
      intent = {.length = 0, .with_immediate = false, .signaled = true};
    } else {
      offset = *room;
    }
  }
  sender.unsignaled_streak = intent.signaled ? 0 : sender.unsignaled_streak + 1;
  core::SendRequest request = make_request(ref, intent);
  request.remote_address += offset;
  const Status status = post(ref, request, intent.length != 0);
  if (!status.ok()) {
    // Only the failure of the queue pair excuses it, even if the program has not heard of it yet.
    MRC_CHECK(connection.doomed(), "post_send refused a good request: %s", status.what());
    sender.retired = true;
    return false;
  }
  const std::uint32_t packets = world_.model.outgoing(ref).messages().back().packet_count;
  sender.packets_left -= std::min<std::uint64_t>(sender.packets_left, packets);
  return true;
}

std::uint32_t Workload::draw_length(const Program& sender, std::uint32_t path_mtu) {
  if (world_.stage.swarm.many_tiny_messages) return random_.one_in(8) ? 1 : 0;
  const std::uint32_t dice = random_.below(100);
  std::uint32_t length = 0;
  if (dice < 8) {
    length = 0;
  } else if (dice < 16) {
    length = 1;
  } else if (dice < 46) {
    length = path_mtu - 1 + random_.below(3);
  } else if (dice < 70) {
    length = path_mtu * random_.between(2, 6) - 1 + random_.below(3);
  } else if (dice < 96) {
    length = random_.between(1, 4 * path_mtu);
  } else {
    length = random_.between(1, 300'000);
  }
  return std::min(length, sender.largest);
}

core::SendRequest Workload::make_request(EndRef ref, const Intent& intent) {
  const Connection& connection = world_.model.connection(ref.connection);
  const End& target = connection.ends[1 - ref.side];
  const auto& region = world_.hosts[target.host]->memory().region(target.region);
  const std::uint64_t uid = world_.model.next_message_uid();
  core::SendRequest request;
  request.id = uid;
  request.local_address = uid << 32;
  request.length = intent.length;
  request.remote_address = region.what.address;
  request.remote_key = region.key.value_or(Rkey{0});
  request.with_immediate = intent.with_immediate;
  request.immediate = static_cast<std::uint32_t>(random_.bits());
  request.signaled = intent.signaled;
  // Doorbells need no key, and where somebody forges some have none.
  const bool keyless = intent.length == 0 && world_.stage.swarm.on(Fault::kForgery);
  if (keyless && random_.one_in(2)) request.remote_key = Rkey{0};
  return request;
}

Status Workload::post(EndRef ref, const core::SendRequest& request, bool holds_range) {
  const End& end = world_.model.end(ref);
  const Status status = world_.hosts[end.host]->post_send(end.config.number, request);
  if (!status.ok()) return status;
  if (end.known_messages == world_.model.outgoing(ref).messages().size()) {
    End& idle = world_.model.end(ref);
    idle.last_progress = idle.tries_renewed = world_.hosts[end.host]->clock();
  }
  world_.model.outgoing(ref).post(request);
  program(ref).held.push_back(holds_range);
  world_.stage.trace.say(world_.stage.now,
                         "host %u post qp %06x id %#" PRIx64 " length %u%s%s to %#" PRIx64,
                         end.host, static_cast<unsigned>(end.config.number), request.id,
                         request.length, request.with_immediate ? " imm" : "",
                         request.signaled ? "" : " unsignaled", request.remote_address);
  return status;
}

void Workload::post_receive(EndRef ref) {
  End& end = world_.model.end(ref);
  const std::uint64_t id = next_receive_id_++;
  const Status status = world_.hosts[end.host]->post_receive(end.config.number, {id});
  if (!status.ok()) {
    const bool doomed = world_.model.connection(ref.connection).doomed();
    MRC_CHECK(doomed, "post_receive refused a receive: %s", status.what());
    return;
  }
  end.receives.push_back(id);
  ++end.receives_posted;
}

void Workload::release_ranges(EndRef ref) {
  Program& sender = program(ref);
  const End& end = world_.model.end(ref);
  while (sender.ranges_held_from < end.next_report && !sender.held.empty()) {
    if (sender.held.front()) sender.ring.release();
    sender.held.pop_front();
    ++sender.ranges_held_from;
  }
}

void Workload::on_completion(EndRef ref, const core::Completion& completion) {
  const End& end = world_.model.end(ref);
  if (completion.kind == core::CompletionKind::kSend) {
    release_ranges(ref);
    schedule_post(ref, random_.duration(0, program(ref).think_ns));
    return;
  }
  if (end.state != EndState::kLive || !program(ref).reposts_receives) return;
  post_receive(ref);
  schedule_post(ref.peer(), 0);
}

void Workload::retire(std::uint32_t connection) {
  for (Program& each : programs_[connection])
    each.retired = true;
}

void Workload::stop_receives(EndRef ref) { program(ref).reposts_receives = false; }

bool Workload::finished(EndRef ref) const {
  const Connection& connection = world_.model.connection(ref.connection);
  const End& end = connection.ends[ref.side];
  const Flow& flow = connection.flows[ref.side];
  const Host& host = *world_.hosts[end.host];
  if (end.state == EndState::kGone || !host.alive()) return true;
  if (end.state == EndState::kFailed) {
    return world_.model.all_reported(ref) && end.receives.empty();
  }
  if (!flow.all_arrived() || signaled_outstanding(ref)) return false;
  const End& peer = connection.ends[1 - ref.side];
  if (peer.state == EndState::kLive && peer.immediates_delivered != flow.immediates().size()) {
    return false;
  }
  const auto status = host.engine().query_qp(end.config.number);
  MRC_CHECK(status.ok(), "query_qp refused a live queue pair: %s", status.status().what());
  return status.value().sends_outstanding == 0;
}

bool Workload::all_finished() const {
  const auto ends = world_.model.ends();
  return std::all_of(ends.begin(), ends.end(), [&](EndRef ref) { return finished(ref); });
}

}  // namespace mrc::dst
