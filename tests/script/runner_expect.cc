// Verbs that look at what came out of the engine.
#include <utility>

#include "script/records.h"
#include "script/runner.h"

namespace mrc::script {

std::string Runner::compare(const Assignment& assignment, std::uint64_t actual, unsigned bits,
                            Symbols symbols, unsigned repeat, Variables& variables) {
  if (assignment.value == "*") return "";
  if (const auto name = unbound_variable(assignment.value, variables)) {
    if (assignment.comparison != Comparison::kEqual) {
      throw std::invalid_argument("unknown variable $" + *name);
    }
    variables[*name] = actual;
    return "";
  }
  const std::uint64_t expected = evaluate(assignment.value, variables, symbols, repeat);
  if (compares(actual, assignment.comparison, expected, bits)) return "";
  return assignment.name + " is " + show_value(actual, symbols) + ", expected " +
         (assignment.comparison == Comparison::kNotEqual ? "anything but " : "") + assignment.value;
}

template <typename T>
std::string Runner::mismatch(std::span<const Field<T>> fields, const T& subject, unsigned repeat,
                             Variables& variables) const {
  std::string wrong;
  for (const Assignment& assignment : statement_->fields) {
    const Field<T>* found = nullptr;
    for (const Field<T>& entry : fields) {
      if (assignment.name == entry.name) found = &entry;
    }
    if (found == nullptr) throw std::invalid_argument("unknown field: " + assignment.name);
    const std::string difference =
        compare(assignment, found->get(subject), found->bits, found->symbols, repeat, variables);
    if (!difference.empty()) wrong += (wrong.empty() ? "" : "; ") + difference;
  }
  return wrong;
}

std::string Runner::mismatch(const ScriptPacket& packet, unsigned repeat,
                             Variables& variables) const {
  std::string wrong;
  const PacketKind kind = kind_of(packet.packet);
  for (const Assignment& assignment : statement_->fields) {
    std::string difference;
    if (kind == PacketKind::kSack && assignment.name == "got") {
      const auto& sack = std::get<wire::Sack>(packet.packet.body);
      if (sacked_psns(sack) != evaluate_list(assignment.value, variables)) {
        difference = "the bitmap does not show exactly " + assignment.value;
      }
    } else {
      const PacketField* found = find_field(kind, assignment.name);
      if (found == nullptr) throw std::invalid_argument("unknown field: " + assignment.name);
      difference =
          compare(assignment, found->get(packet), found->bits, found->symbols, repeat, variables);
    }
    if (!difference.empty()) wrong += (wrong.empty() ? "" : "; ") + difference;
  }
  return wrong;
}

void Runner::forget_ignored() {
  std::erase_if(world_->packets, [this](const ScriptPacket& packet) {
    return ignored_.contains(kind_of(packet.packet));
  });
}

void Runner::wait_for(const std::function<bool()>& attempt, const std::string& what) {
  const Timing& timing = statement_->timing;
  if (timing.kind != Timing::Kind::kWindow) {
    if (!attempt()) throw Mismatch("expected: " + what + "\ngot:      none");
    return;
  }
  if (timing.from > 0) {
    world_->run_until(start_ + timing.from - 1);
    if (attempt()) throw Mismatch("expected: " + what + "\ngot:      it, but too early");
  }
  const TimeNs limit = start_ + timing.to;
  bool more = true;
  while (!attempt()) {
    if (!more) throw Mismatch("expected: " + what + "\ngot:      none until " + show_time(limit));
    more = world_->step(limit);
  }
}

// Takes the first packet of the pattern's kind (and queue pair, where qp= is given), which must
// match; with `any` the first that matches, wherever it stands.
bool Runner::claim_packet(const PacketPattern& pattern, bool any, unsigned repeat) {
  forget_ignored();
  const Assignment* qp_field = field("qp");
  for (auto packet = world_->packets.begin(); packet != world_->packets.end(); ++packet) {
    if (kind_of(packet->packet) != pattern.kind) continue;
    Variables variables = variables_;
    if (qp_field != nullptr &&
        !compare(*qp_field, static_cast<std::uint64_t>(packet->qp), 24, {}, repeat, variables)
             .empty()) {
      continue;
    }
    std::string wrong = mismatch(*packet, repeat, variables);
    if (!matches(pattern, packet->packet)) wrong = "another opcode; " + wrong;
    if (wrong.empty()) {
      variables_ = std::move(variables);
      world_->packets.erase(packet);
      return true;
    }
    if (!any) {
      throw Mismatch("the next packet of this kind differs: " + wrong +
                     "\ngot:      " + show_time(packet->time) + "  " + describe(*packet));
    }
  }
  return false;
}

bool Runner::claim_completion(const std::string& kind, unsigned repeat) {
  if (kind != "send" && kind != "receive") throw std::invalid_argument("send or receive?");
  const auto wanted = kind == "send" ? core::CompletionKind::kSend : core::CompletionKind::kReceive;
  const Assignment* qp_field = field("qp");
  for (auto it = world_->completions.begin(); it != world_->completions.end(); ++it) {
    Variables variables = variables_;
    if (it->kind != wanted) continue;
    if (qp_field != nullptr &&
        !compare(*qp_field, static_cast<std::uint64_t>(it->qp), 24, {}, 0, variables).empty()) {
      continue;
    }
    const std::string wrong = mismatch(completion_fields(), *it, repeat, variables);
    if (!wrong.empty()) {
      throw Mismatch("the next completion differs: " + wrong + "\ngot:      " + describe(*it));
    }
    variables_ = std::move(variables);
    world_->completions.erase(it);
    return true;
  }
  return false;
}

// The first event that matches; events are never all claimed, so others are passed over.
bool Runner::claim_event(const std::string& kind) {
  const std::uint64_t wanted = evaluate(kind, variables_, event_kinds());
  for (auto it = world_->events.begin(); it != world_->events.end(); ++it) {
    if (static_cast<std::uint64_t>(it->kind) != wanted) continue;
    Variables variables = variables_;
    if (!mismatch(event_fields(), *it, 0, variables).empty()) continue;
    variables_ = std::move(variables);
    world_->events.erase(it);
    return true;
  }
  return false;
}

void Runner::expect() {
  if (word(1) == "none") return expect_none();
  if (word(1) == "event") {
    return wait_for([this] { return claim_event(word(2)); }, "an event " + word(2));
  }
  std::size_t next = 1;
  const unsigned repeats = count(next);
  if (word(next) == "completion") {
    for (unsigned i = 0; i < repeats; ++i) {
      wait_for([&] { return claim_completion(word(next + 1), i); }, "a completion");
    }
    return;
  }
  const bool any = word(next) == "any";
  if (any) ++next;
  PacketPattern pattern;
  if (!find_pattern(word(next), pattern)) throw std::invalid_argument("expect what? " + word(next));
  for (unsigned i = 0; i < repeats; ++i) {
    wait_for([&] { return claim_packet(pattern, any, i); }, word(next));
  }
}

// expect none [KIND | completion | event KIND] [fields] [until +TIME]
void Runner::expect_none() {
  const auto& words = statement_->words;
  if (words.size() >= 4 && words[words.size() - 2] == "until") {
    const auto duration = parse_duration(words.back().substr(1));
    if (!duration) throw std::invalid_argument("not a time: " + words.back());
    world_->run_until(world_->now() + *duration);
  }
  forget_ignored();
  const std::string subject = has_word(2) && word(2) != "until" ? word(2) : "";
  Variables scratch = variables_;
  if (subject == "completion") {
    for (const core::Completion& completion : world_->completions) {
      if (mismatch(completion_fields(), completion, 0, scratch).empty()) {
        throw Mismatch("expected: no completion\ngot:      " + describe(completion));
      }
    }
    return;
  }
  if (subject == "event") {
    if (claim_event(word(3))) throw Mismatch("expected: no event " + word(3));
    return;
  }
  PacketPattern pattern;
  if (!subject.empty() && !find_pattern(subject, pattern)) {
    throw std::invalid_argument("expect none of what? " + subject);
  }
  for (const ScriptPacket& packet : world_->packets) {
    if (!subject.empty() && !matches(pattern, packet.packet)) continue;
    if (!subject.empty() && !mismatch(packet, 0, scratch).empty()) continue;
    throw Mismatch("expected: no " + (subject.empty() ? "packet" : subject) +
                   "\ngot:      " + show_time(packet.time) + "  " + describe(packet));
  }
}

// ignore KIND...: packets of these kinds need no expectation from now on.
void Runner::ignore() {
  for (std::size_t i = 1; has_word(i); ++i) {
    PacketPattern pattern;
    if (!find_pattern(word(i), pattern)) throw std::invalid_argument("not a packet: " + word(i));
    ignored_.insert(pattern.kind);
  }
}

// discard [KIND]: forgets what was sent so far.
void Runner::discard() {
  PacketPattern pattern;
  if (has_word(1) && !find_pattern(word(1), pattern)) {
    throw std::invalid_argument("not a packet: " + word(1));
  }
  std::erase_if(world_->packets, [&](const ScriptPacket& packet) {
    return !has_word(1) || matches(pattern, packet.packet);
  });
}

void Runner::check() {
  if (word(1) == "qp") return check_qp();
  if (word(1) == "ev") return check_ev();
  Variables scratch = variables_;
  std::string wrong;
  for (const Assignment& assignment : statement_->fields) {
    std::uint64_t actual = 0;
    if (word(1) == "counters") {
      actual = read_counter(world_->engine().counters(), assignment.name);
    } else if (word(1) == "ports" && assignment.name == "up") {
      actual = world_->engine().ports_up().bits();
    } else {
      throw std::invalid_argument("check what? " + word(1));
    }
    wrong += compare(assignment, actual, 64, {}, 0, variables_);
  }
  if (!wrong.empty()) throw Mismatch(wrong);
}

// check qp [NUMBER] state=rts in_flight=0 ..., or `check qp 7 gone`
void Runner::check_qp() {
  const bool numbered = has_word(2) && is_number(word(2));
  const QpNumber qp = numbered ? static_cast<QpNumber>(evaluate(word(2), variables_))
                               : static_cast<QpNumber>(default_qp_);
  const auto status = world_->engine().query_qp(qp);
  const std::size_t last = statement_->words.size() - 1;
  if (word(last) == "gone") {
    if (status.ok()) throw Mismatch("expected: no such queue pair\ngot:      it exists");
    return;
  }
  if (!status.ok()) throw Mismatch(std::string("query_qp: ") + status.status().what());
  const std::string wrong = mismatch(status_fields(), status.value(), 0, variables_);
  if (!wrong.empty()) throw Mismatch(wrong);
}

// check ev ENTROPY state=good [sent=] [lost=] [marked=] [qp=]
void Runner::check_ev() {
  const auto qp = static_cast<QpNumber>(value("qp", default_qp_));
  const QpRecord& target = record(qp);
  if (!target.profile) throw std::invalid_argument("this queue pair has no EV profile");
  const auto entropy = static_cast<std::uint32_t>(evaluate(word(2), variables_));
  const EvIndex ev = target.profile->find(entropy);
  const auto state = world_->engine().query_ev(qp, ev);
  const auto counters = world_->engine().query_ev_counters(qp, ev);
  if (!state.ok()) throw Mismatch(std::string("query_ev: ") + state.status().what());
  if (!counters.ok()) throw Mismatch(std::string("query_ev_counters: ") + counters.status().what());
  for (const Assignment& assignment : statement_->fields) {
    if (assignment.name == "qp") continue;
    std::string wrong = "unknown field: " + assignment.name;
    if (assignment.name == "state") {
      wrong = compare(assignment, static_cast<std::uint64_t>(state.value()), 8, ev_states(), 0,
                      variables_);
    }
    for (const Field<core::EvCounters>& entry : ev_counter_fields()) {
      if (assignment.name != entry.name) continue;
      wrong = compare(assignment, entry.get(counters.value()), 64, {}, 0, variables_);
    }
    if (!wrong.empty()) throw Mismatch(wrong);
  }
}

}  // namespace mrc::script
