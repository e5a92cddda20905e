// What programs and controllers do wrong, or do at an awkward moment.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "core/endpoint.h"
#include "dst/connection.h"
#include "dst/random.h"
#include "dst/stage.h"

namespace mrc::dst {

struct World;
class Host;

class ApiFaults {
 public:
  explicit ApiFaults(World& world);

  void start();
  void on_fault(Fault kind);
  // The answer to an endpoint probe came, or its time was up.
  void on_answer(Host& host, const core::Event& event);
  void heal();
  void check_all_answered();

 private:
  void schedule_next(Fault kind);
  std::optional<EndRef> random_live_end();
  void strike(Fault kind, EndRef ref);
  void reuse_numbers(std::uint32_t first);
  void post_to_dead(EndRef ref);
  void fill_send_queue(EndRef ref);
  void invalidate_memory(EndRef ref);
  void bad_access(EndRef ref);
  core::SendRequest bad_request(EndRef ref);
  void starve_receives(EndRef ref);
  void flood_immediates(EndRef ref);
  void fail_locally(EndRef ref);
  void change_window(EndRef ref);
  void deny_ev(EndRef ref);
  void probe_endpoint(EndRef ref);
  void change_profiles(EndRef ref);

  World& world_;
  Random random_;
  std::deque<core::EvProfile> profiles_;                 // made by change_profiles
  std::set<std::pair<unsigned, std::uint16_t>> probes_;  // (host, request id) without an answer
  std::uint16_t next_request_id_ = 0;
};

// Calls the engine with arguments that its contract forbids; each must be refused and change
// nothing.
void check_bad_arguments(Host& host, const End& end, Random& random);

}  // namespace mrc::dst
