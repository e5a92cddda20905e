// Verbs that set up and control the engine, and those that give it work and packets.
#include <utility>

#include "script/records.h"
#include "script/runner.h"

namespace mrc::script {

void Runner::config() {
  if (world_) throw std::invalid_argument("config comes before everything else");
  for (const Assignment& assignment : statement_->fields)
    endpoint_.assign(assignment, variables_);
}

// memory $key base=0x10000 len=65536 [domain=1] [write=1]
void Runner::memory() {
  allow_fields({"base", "len", "domain", "write"});
  const core::MemoryRegion region{
      .address = value("base", 0x10000),
      .length = value("len", 0x10000),
      .domain = static_cast<ProtectionDomain>(value("domain", 1)),
      .remote_write = value("write", 1) != 0,
  };
  const Result<Rkey> key = world_->register_memory(region);
  settle(key.status());
  if (!key.ok()) return;
  const auto number = static_cast<std::uint64_t>(key.value());
  inject_defaults_.key = key.value();
  inject_defaults_.address = region.address;
  if (!has_word(1)) return;
  const auto name = unbound_variable(word(1), variables_);
  if (!name) throw std::invalid_argument("not a new variable: " + word(1));
  variables_[*name] = number;
}

void Runner::invalidate() {
  settle(world_->invalidate_memory(static_cast<Rkey>(evaluate(word(1), variables_))));
}

Status Runner::move_qp(QpNumber qp, const std::string& state) {
  core::Endpoint& engine = world_->engine();
  QpRecord& target = record(qp);
  const Settings& settings = target.settings;
  if (state == "init") {
    std::unique_ptr<core::EvProfile> profile;
    if (settings["evs"] > 0) {
      auto made = make_profile(settings, endpoint_.get<unsigned>("ports"));
      if (!made.ok()) return made.status();
      profile = std::make_unique<core::EvProfile>(std::move(made).value());
    }
    if (target.profile) old_profiles_.push_back(std::move(target.profile));
    target.profile = std::move(profile);
    return engine.init_qp(qp, make_init(settings, target.profile.get()));
  }
  if (state == "rtr") return engine.ready_to_receive(qp, make_ready_to_receive(settings));
  if (state == "rts") return engine.ready_to_send(world_->now(), qp, make_ready_to_send(settings));
  throw std::invalid_argument("unknown state: " + state);
}

// qp [NUMBER] reset|init|rtr|rts [settings]: makes a queue pair and takes it to that state.
void Runner::qp() {
  std::size_t next = 1;
  std::uint64_t number = kDefaultQp;
  if (is_number(word(1))) number = evaluate(word(next++), variables_);
  if (qps_.empty()) default_qp_ = number;
  const auto qp = static_cast<QpNumber>(number);
  QpRecord& target = qps_[qp];
  for (const Assignment& assignment : statement_->fields) {
    target.settings.assign(assignment, variables_);
  }
  Status status = world_->engine().create_qp(make_qp_config(qp, target.settings));
  world_->watch(qp);
  for (const char* state : {"init", "rtr", "rts"}) {
    if (!status.ok() || word(next) == "reset") break;
    status = move_qp(qp, state);
    if (word(next) == state) break;
  }
  settle(status);
}

// create NUMBER [settings]: only the call; for refusals.
void Runner::create() {
  const auto qp = static_cast<QpNumber>(evaluate(word(1), variables_));
  QpRecord& target = qps_[qp];
  for (const Assignment& assignment : statement_->fields) {
    target.settings.assign(assignment, variables_);
  }
  settle(world_->engine().create_qp(make_qp_config(qp, target.settings)));
}

// modify [NUMBER] init|rtr|rts [settings]: only the call.
void Runner::modify() {
  const QpNumber qp = qp_at(1);
  const std::string& state = word(is_number(word(1)) ? 2 : 1);
  for (const Assignment& assignment : statement_->fields) {
    record(qp).settings.assign(assignment, variables_);
  }
  settle(move_qp(qp, state));
}

// port 2 down
void Runner::port() {
  const auto number = static_cast<PortId>(evaluate(word(1), variables_));
  if (word(2) != "up" && word(2) != "down") throw std::invalid_argument("up or down?");
  world_->note("port " + word(1) + " " + word(2));
  settle(world_->engine().set_port_up(world_->now(), number, word(2) == "up"));
}

// free_ports 0b01: where the caller has room for packets from now on.
void Runner::free_ports() {
  world_->set_free_ports(PortMask(static_cast<std::uint32_t>(evaluate(word(1), variables_))));
  world_->pump();
}

void Runner::endpoint_probe() {
  allow_fields({"peer", "port", "ev", "id", "timeout"});
  const core::EndpointProbe probe{
      .peer = address_of(value("peer", 1)),
      .port = static_cast<PortId>(value("port", 1)),
      .entropy = static_cast<std::uint32_t>(value("ev", 0)),
      .request_id = static_cast<std::uint16_t>(value("id", 0)),
      .timeout_ns = static_cast<DurationNs>(value("timeout", kMillisecondNs)),
  };
  settle(world_->engine().send_endpoint_probe(world_->now(), probe));
}

void Runner::receive_window() {
  allow_fields({"qp", "units"});
  settle(
      world_->engine().set_receive_window(qp_at(1), static_cast<std::uint8_t>(value("units", 0))));
}

// replace_paths [NUMBER] from=16: EV i is the one with the entropy of number 16 + i from now on.
void Runner::replace_paths() {
  allow_fields({"qp", "from"});
  const QpNumber qp = qp_at(1);
  QpRecord& target = record(qp);
  const Settings& settings = target.settings;
  auto made = make_profile(settings, endpoint_.get<unsigned>("ports"),
                           static_cast<std::uint32_t>(value("from", 0)));
  if (!made.ok()) return settle(made.status());
  auto profile = std::make_unique<core::EvProfile>(std::move(made).value());
  const core::CcProfile cc = make_init(settings, profile.get()).cc;
  settle(world_->engine().follow_profiles(world_->now(), qp, *profile, cc));
  old_profiles_.push_back(std::exchange(target.profile, std::move(profile)));
  world_->pump();
}

// deny ev=$a: by entropy value.
void Runner::deny(bool denied) {
  allow_fields({"qp", "ev"});
  const QpNumber qp = qp_at(1);
  const QpRecord& target = record(qp);
  if (!target.profile) throw std::invalid_argument("this queue pair has no EV profile");
  const EvIndex ev = target.profile->find(static_cast<std::uint32_t>(value("ev", 0)));
  settle(world_->engine().set_ev_denied(world_->now(), qp, ev, denied));
}

// let name=value ...: binds variables without an expectation.
void Runner::let() {
  for (const Assignment& assignment : statement_->fields) {
    variables_[assignment.name] = evaluate(assignment.value, variables_);
  }
}

// post [N] write|write_imm|receive id= len= ...
void Runner::post() {
  allow_fields({"qp", "id", "len", "va", "key", "imm", "addr", "signaled"});
  std::size_t next = 1;
  const unsigned repeats = count(next);
  const std::string& kind = word(next);
  if (kind != "write" && kind != "write_imm" && kind != "receive") {
    throw std::invalid_argument("post what? " + kind);
  }
  const QpNumber qp = qp_at(statement_->words.size());
  for (unsigned i = 0; i < repeats; ++i) {
    if (kind == "receive") {
      settle(world_->engine().post_receive(qp, {.id = value("id", 0, i)}));
      continue;
    }
    core::SendRequest request;
    request.id = value("id", 0, i);
    request.local_address = value("addr", 0x90'0000, i);
    request.length = static_cast<std::uint32_t>(value("len", 0, i));
    request.remote_address = value("va", 0x1'0000, i);
    request.remote_key = static_cast<Rkey>(value("key", 0x1234, i));
    request.with_immediate = kind == "write_imm";
    request.immediate = static_cast<std::uint32_t>(value("imm", 0, i));
    request.signaled = value("signaled", 1, i) != 0;
    world_->note("post " + kind + " id=" + show_value(request.id));
    settle(world_->engine().post_send(world_->now(), qp, request));
  }
}

// inject [N] [corrupt] KIND fields [-> outcome]
void Runner::inject() {
  std::size_t next = 1;
  const unsigned repeats = count(next);
  const bool corrupt = word(next) == "corrupt";
  if (corrupt) ++next;
  PacketPattern pattern;
  if (!find_pattern(word(next), pattern) || pattern.any_write) {
    throw std::invalid_argument("not a packet to inject: " + word(next));
  }
  const auto qp = static_cast<QpNumber>(value("qp", default_qp_));
  inject_defaults_.qp = qp;
  const auto target = qps_.find(qp);
  if (target != qps_.end()) {
    inject_defaults_.peer = address_of(target->second.settings["peer"]);
    inject_defaults_.peer_qp = target->second.settings.get<QpNumber>("peer_qp");
  }
  for (unsigned i = 0; i < repeats; ++i) {
    const ScriptPacket packet =
        make_packet(*world_, pattern, statement_->fields, inject_defaults_, variables_, i);
    if (corrupt) {
      world_->inject_corrupt(packet);
    } else {
      settle(world_->inject(packet));
    }
  }
}

void Runner::settle(const core::RxResult& result) {
  const auto& words = statement_->outcome_words;
  const std::string outcome = words.empty() ? "used" : words[0];
  if (outcome == "any") return;
  const auto drop = static_cast<std::uint64_t>(result.drop);
  if (outcome == "dropped") {
    const std::string reason = words.size() < 2 ? "" : words[1];
    const bool right =
        reason.empty() ? drop != 0 : drop == evaluate(reason, variables_, drop_reasons());
    if (right) return;
    throw Mismatch("expected: dropped " + reason + "\ngot:      " +
                   (drop == 0 ? "used" : "dropped " + show_value(drop, drop_reasons())));
  }
  if (drop != 0) {
    throw Mismatch("expected: " + outcome + "\ngot:      dropped " +
                   show_value(drop, drop_reasons()));
  }
  if (outcome == "used") return;
  if (outcome != "placed") throw std::invalid_argument("unknown outcome: " + outcome);
  static const Field<core::Placement> kFields[] = {
      {"va", [](const core::Placement& p) { return p.address; }},
      {"len", [](const core::Placement& p) { return std::uint64_t{p.length}; }},
  };
  for (const Assignment& assignment : statement_->outcome_fields) {
    for (const Field<core::Placement>& field_entry : kFields) {
      if (assignment.name != field_entry.name) continue;
      const std::string wrong =
          compare(assignment, field_entry.get(result.placement), 64, {}, 0, variables_);
      if (!wrong.empty()) throw Mismatch(wrong);
    }
  }
}

}  // namespace mrc::script
