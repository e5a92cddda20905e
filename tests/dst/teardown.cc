#include "dst/teardown.h"

#include "dst/failure.h"
#include "dst/random.h"
#include "dst/world.h"

namespace mrc::dst {
namespace {

void check_ok(const Status& status, const char* call) {
  MRC_CHECK(status.ok(), "%s refused good arguments: %s", call, status.what());
}

// A few requests that nobody will see finished.
void post_some(World& world, EndRef ref, Random& random) {
  const End& end = world.model.end(ref);
  for (std::uint32_t i = random.between(1, 3); i != 0; --i) {
    if (world.model.outgoing(ref).messages().size() - end.next_report >= end.config.max_sends)
      return;
    const bool signaled = random.one_in(2);
    // Refused if the other end is down already and this one has noticed.
    if (!world.workload.post(ref, world.workload.make_request(ref, {0, false, signaled})).ok())
      return;
  }
}

// Everything outstanding is flushed, once and in order; then the queue pair takes nothing.
void fail_and_flush(World& world, EndRef ref) {
  const End& end = world.model.end(ref);
  Host& host = *world.hosts[end.host];
  const QpNumber number = end.config.number;
  check_ok(host.engine().fail_qp(host.clock(), number), "fail_qp");
  host.pump();
  MRC_CHECK(world.model.all_reported(ref) && end.receives.empty(),
            "fail_qp did not flush all requests of queue pair %06x", static_cast<unsigned>(number));
  MRC_CHECK(!host.post_send(number, {}).ok(), "post_send to a failed queue pair was accepted");
  check_ok(host.engine().reset_qp(number), "reset_qp");
  const auto status = host.engine().query_qp(number);
  MRC_CHECK(status.ok() && status.value().state == core::QpState::kReset &&
                status.value().sends_outstanding == 0 && status.value().receives_outstanding == 0,
            "reset_qp left something in queue pair %06x", static_cast<unsigned>(number));
}

}  // namespace

void tear_down(World& world) {
  Random random(world.stage.swarm.seed, Stream::kTeardown);
  world.stage.trace.say(world.stage.now, "queue pairs are taken down");
  for (const EndRef ref : world.model.ends()) {
    world.model.connection(ref.connection).add_doom(Doom::kLocal);
    world.model.connection(ref.connection).add_doom(Doom::kRetries);
    world.workload.stop_receives(ref);
  }
  for (const EndRef ref : world.model.ends()) {
    const End& end = world.model.end(ref);
    Host& host = *world.hosts[end.host];
    if (end.state == EndState::kLive) post_some(world, ref, random);
    if (random.one_in(2)) host.pump();
    if (end.state == EndState::kLive && random.one_in(2)) fail_and_flush(world, ref);
    world.workload.destroy(ref);
    MRC_CHECK(!host.engine().destroy_qp(end.config.number).ok(), "destroy_qp worked twice");
    host.pump();
  }
  world.run_until(world.stage.now + 2 * kMillisecondNs);
}

}  // namespace mrc::dst
