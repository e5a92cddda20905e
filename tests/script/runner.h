// The interpreter of scripts: what each verb does with the engine. Internal to script_runner.
//
// Verbs are methods without arguments that read the current statement. They throw Mismatch when the
// engine did not do what the script says, std::invalid_argument when the script makes no sense.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "script/inject.h"
#include "script/packet_fields.h"
#include "script/settings.h"
#include "script/world.h"

namespace mrc::script {

inline constexpr std::uint64_t kDefaultQp = 100;

bool is_number(const std::string& word);

// A condition that the script stated and the engine did not meet.
class Mismatch : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One queue pair of the engine, as the script set it up. The profile must outlive the engine.
struct QpRecord {
  Settings settings = qp_settings();
  std::unique_ptr<core::EvProfile> profile;
};

class Runner {
 public:
  std::string log() const { return world_ ? world_->log() : ""; }

  void run(const Statement& statement);

  // What the script did not account for.
  void finish();

 private:
  using Verb = std::function<void(Runner&)>;
  static const std::map<std::string, Verb>& verbs();

  // --- The parts of the current statement ---

  const std::string& word(std::size_t i) const;
  bool has_word(std::size_t i) const { return i < statement_->words.size(); }
  const Assignment* field(const char* name) const;
  std::uint64_t value(const char* name, std::uint64_t fallback, unsigned repeat = 0) const;
  // Verbs that read their fields one by one call this first, so that no misspelt name is passed
  // over.
  void allow_fields(std::initializer_list<std::string_view> names) const;
  // The optional count after the verb; `next` is the position of the word behind it.
  unsigned count(std::size_t& next) const;
  // A queue pair named by a number at position i, by qp=, or the one the script speaks of by
  // default.
  QpNumber qp_at(std::size_t i) const;
  QpRecord& record(QpNumber qp);

  // Compares the answer of a call with the statement's outcome; no outcome means success.
  void settle(const Status& status);

  // --- Verbs: set-up and control ---

  void config();
  void memory();
  void invalidate();
  void qp();
  void create();
  void modify();
  void fail() { settle(world_->engine().fail_qp(world_->now(), qp_at(1))); }
  void reset() { settle(world_->engine().reset_qp(qp_at(1))); }
  void destroy() { settle(world_->engine().destroy_qp(qp_at(1))); }
  void port();
  void free_ports();
  void endpoint_probe();
  void receive_window();
  void replace_paths();
  void deny(bool denied);
  Status move_qp(QpNumber qp, const std::string& state);

  // --- Verbs: work, packets, expectations ---

  void post();
  void inject();
  void settle(const core::RxResult& result);
  void expect();
  void expect_none();
  void ignore();
  void discard();
  void check();
  void check_qp();
  void check_ev();
  void let();

  void forget_ignored();
  // Runs `attempt` until it succeeds or the statement's window of time is over.
  void wait_for(const std::function<bool()>& attempt, const std::string& what);
  bool claim_packet(const PacketPattern& pattern, bool any, unsigned repeat);
  bool claim_completion(const std::string& kind, unsigned repeat);
  bool claim_event(const std::string& kind);

  // Empty when all the statement's fields hold; otherwise what does not. Unbound variables are
  // bound in `variables`.
  template <typename T>
  std::string mismatch(std::span<const Field<T>> fields, const T& subject, unsigned repeat,
                       Variables& variables) const;
  std::string mismatch(const ScriptPacket& packet, unsigned repeat, Variables& variables) const;
  static std::string compare(const Assignment& assignment, std::uint64_t actual, unsigned bits,
                             Symbols symbols, unsigned repeat, Variables& variables);

  const Statement* statement_ = nullptr;
  TimeNs start_ = 0;
  Settings endpoint_ = endpoint_settings();
  std::map<QpNumber, QpRecord> qps_;
  std::vector<std::unique_ptr<core::EvProfile>> old_profiles_;
  std::unique_ptr<World> world_;  // after what its engine refers to
  Variables variables_;
  std::set<PacketKind> ignored_;
  std::uint64_t default_qp_ = kDefaultQp;
  InjectDefaults inject_defaults_;
};

}  // namespace mrc::script
