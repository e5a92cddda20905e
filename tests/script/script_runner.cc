#include "script/script_runner.h"

#include <cctype>
#include <utility>

#include "script/records.h"
#include "script/runner.h"

namespace mrc::script {

bool is_number(const std::string& word) {
  return !word.empty() && std::isdigit(static_cast<unsigned char>(word[0])) != 0;
}

const std::map<std::string, Runner::Verb>& Runner::verbs() {
  static const std::map<std::string, Verb> table = {
      {"config", &Runner::config},
      {"memory", &Runner::memory},
      {"invalidate", &Runner::invalidate},
      {"qp", &Runner::qp},
      {"create", &Runner::create},
      {"modify", &Runner::modify},
      {"fail", &Runner::fail},
      {"reset", &Runner::reset},
      {"destroy", &Runner::destroy},
      {"port", &Runner::port},
      {"free_ports", &Runner::free_ports},
      {"endpoint_probe", &Runner::endpoint_probe},
      {"receive_window", &Runner::receive_window},
      {"replace_paths", &Runner::replace_paths},
      {"deny", [](Runner& r) { r.deny(true); }},
      {"allow", [](Runner& r) { r.deny(false); }},
      {"post", &Runner::post},
      {"inject", &Runner::inject},
      {"expect", &Runner::expect},
      {"ignore", &Runner::ignore},
      {"discard", &Runner::discard},
      {"check", &Runner::check},
      {"let", &Runner::let},
  };
  return table;
}

void Runner::run(const Statement& statement) {
  statement_ = &statement;
  const auto verb = verbs().find(word(0));
  if (verb == verbs().end()) throw std::invalid_argument("unknown verb: " + word(0));
  if (word(0) == "config") return config();
  if (!world_) {
    world_ = std::make_unique<World>(make_endpoint_config(endpoint_));
    world_->engine().set_spray_quantum(endpoint_.get<unsigned>("quantum"));
  }
  const Timing& timing = statement.timing;
  start_ = world_->now();
  if (timing.kind == Timing::Kind::kRelative) world_->run_until(start_ + timing.from);
  if (timing.kind == Timing::Kind::kAbsolute) {
    if (timing.from < start_) throw std::invalid_argument("this time has passed");
    world_->run_until(timing.from);
  }
  if (timing.kind == Timing::Kind::kWindow && word(0) != "expect") {
    throw std::invalid_argument("only `expect` takes a window of time");
  }
  verb->second(*this);
}

void Runner::finish() {
  if (!world_) return;
  forget_ignored();
  if (!world_->packets.empty()) {
    const ScriptPacket& packet = world_->packets.front();
    throw Mismatch("at the end a packet is left that nothing expected:\n  " +
                   show_time(packet.time) + "  " + describe(packet));
  }
  if (!world_->completions.empty()) {
    throw Mismatch("at the end a completion is left that nothing expected:\n  " +
                   describe(world_->completions.front()));
  }
}

const std::string& Runner::word(std::size_t i) const {
  if (i >= statement_->words.size()) throw std::invalid_argument("a word is missing");
  return statement_->words[i];
}

const Assignment* Runner::field(const char* name) const {
  for (const Assignment& assignment : statement_->fields) {
    if (assignment.name == name) return &assignment;
  }
  return nullptr;
}

std::uint64_t Runner::value(const char* name, std::uint64_t fallback, unsigned repeat) const {
  const Assignment* found = field(name);
  return found != nullptr ? evaluate(found->value, variables_, {}, repeat) : fallback;
}

void Runner::allow_fields(std::initializer_list<std::string_view> names) const {
  for (const Assignment& assignment : statement_->fields) {
    bool known = false;
    for (const std::string_view name : names)
      known = known || assignment.name == name;
    if (!known) throw std::invalid_argument("unknown field: " + assignment.name);
  }
}

unsigned Runner::count(std::size_t& next) const {
  next = 1;
  if (!has_word(1) || !is_number(word(1))) return 1;
  next = 2;
  return static_cast<unsigned>(evaluate(word(1), variables_));
}

QpNumber Runner::qp_at(std::size_t i) const {
  if (has_word(i) && is_number(word(i))) {
    return static_cast<QpNumber>(evaluate(word(i), variables_));
  }
  return static_cast<QpNumber>(value("qp", default_qp_));
}

QpRecord& Runner::record(QpNumber qp) {
  const auto found = qps_.find(qp);
  if (found == qps_.end()) throw std::invalid_argument("the script has no such queue pair");
  return found->second;
}

void Runner::settle(const Status& status) {
  world_->pump();
  const auto& words = statement_->outcome_words;
  const std::string got =
      status.ok()
          ? "ok"
          : "refused " + show_value(static_cast<std::uint64_t>(status.code()), error_codes()) +
                " (" + status.what() + ")";
  if (words.empty() || words[0] == "ok") {
    if (!status.ok()) throw Mismatch("expected: ok\ngot:      " + got);
    return;
  }
  if (words[0] != "refused") throw std::invalid_argument("unknown outcome: " + words[0]);
  const bool code_right = words.size() < 2 || static_cast<std::uint64_t>(status.code()) ==
                                                  evaluate(words[1], variables_, error_codes());
  if (status.ok() || !code_right) {
    throw Mismatch("expected: refused " + (words.size() < 2 ? "" : words[1]) +
                   "\ngot:      " + got);
  }
}

RunResult run_script(const Script& script) {
  Runner runner;
  RunResult result;
  try {
    for (const Statement& statement : script.statements) {
      result.line = statement.line;
      runner.run(statement);
    }
    runner.finish();
    result.line = 0;
  } catch (const std::exception& error) {
    result.passed = false;
    result.message = error.what();
  }
  result.log = runner.log();
  return result;
}

}  // namespace mrc::script
