#include "commands/demo/verdict.h"

#include <fmt/core.h>

#include <algorithm>

#include "json_writer.h"
#include "text.h"

namespace mrc::tool::demo {
namespace {

constexpr std::size_t kElementBytes = 4;
constexpr double kHeldByTheMachine = 0.5;

std::string effect_text(const FaultEffect& effect) {
  // Of one that did not come back it is the time for which that was watched.
  const std::string back =
      fmt::format("{}{:.1f} s", effect.recovered ? "" : "> ", effect.recovery_s);
  return fmt::format("{:>5.0f} %  {:>6.1f} s  {:>7}", 100 * effect.worst, effect.stall_s, back);
}

// How much of what its ports could carry the job received when nothing was broken, at best.
double share_of_ports(const DrillResult& result, const Options& options) {
  const double ports = options.mbps * 1e6 / 8 * options.planes * options.hosts;
  double most = 0;
  for (const FaultResult& fault : result.faults)
    most = std::max(most, fault.effect.before / ports);
  return most;
}

void print_table(const Verdict& verdict, const Options& options, const Terminal& out) {
  const std::string single =
      fmt::format("one path, one plane of {:g} Mb/s ports", options.mbps * options.planes);
  fmt::print("\n{:36}  {:25}", "",
             fmt::format("MRC, {} planes of {:g} Mb/s", options.planes, options.mbps));
  fmt::print("{}\n", verdict.single_path ? "   " + single : "");
  constexpr const char* kHead = "  worst     stall     back";
  fmt::print("{:36}  {:25}{}\n", "fault", kHead,
             verdict.single_path ? std::string("   ") + kHead : "");
  for (std::size_t i = 0; i < verdict.mrc.faults.size(); ++i) {
    const FaultResult& fault = verdict.mrc.faults[i];
    fmt::print("{:36}  {}", fault.planned.begins, out.green(effect_text(fault.effect)));
    if (verdict.single_path)
      fmt::print("   {}", out.yellow(effect_text(verdict.single_path->faults.at(i).effect)));
    fmt::print("\n");
  }
}

void print_job(const char* name, const DrillResult& result) {
  fmt::print(
      "{}: {} rounds of all-reduce, {:.1f} MB moved, {:.1f} MB checked, {} bytes wrong, {} "
      "packets sent again, {} in {:.1f} s\n",
      name, result.rounds, static_cast<double>(result.moved_bytes) / 1e6,
      static_cast<double>(result.checked_bytes) / 1e6, result.wrong * kElementBytes,
      grouped(result.retransmitted),
      counted(result.interruptions.size(), "interruption", "interruptions"), result.seconds);
  for (const std::string& what : result.interruptions)
    fmt::print("  {}\n", what);
}

void write_drill(JsonWriter& json, const char* key, const DrillResult& result,
                 const Options& options) {
  json.begin_object(key);
  json.value("rounds", result.rounds);
  json.value("moved_bytes", result.moved_bytes);
  json.value("checked_bytes", result.checked_bytes);
  json.value("wrong_bytes", result.wrong * kElementBytes);
  json.value("retransmitted_packets", result.retransmitted);
  json.value("training_steps", std::uint64_t{result.losses.empty() ? 0 : result.losses.size() - 1});
  json.value("first_loss", result.first_loss);
  json.value("last_loss", result.last_loss);
  json.value("seconds", result.seconds);
  json.value("share_of_ports", share_of_ports(result, options));
  json.array("interruptions", result.interruptions);
  json.begin_array("faults");
  for (const FaultResult& fault : result.faults) {
    json.begin_object();
    json.value("kind", fault.planned.kind);
    json.value("what", fault.planned.begins);
    json.value("at_s", fault.start_s);
    json.value("share_left", fault.planned.share_left);
    json.value("before_bytes_per_second", fault.effect.before);
    json.value("worst_share", fault.effect.worst);
    json.value("stall_s", fault.effect.stall_s);
    json.value("recovered", fault.effect.recovered);
    json.value("recovery_s", fault.effect.recovery_s);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

ExitCode Verdict::exit_code() const {
  if (mrc.wrong > 0 || !losses_are_equal()) return ExitCode::kWrongData;
  const bool worked = mrc.interruptions.empty() && mrc.rounds > 0 && mrc.checked_bytes > 0;
  return worked ? ExitCode::kOk : ExitCode::kFailed;
}

void print_text(const Verdict& verdict, const Options& options, const Terminal& out) {
  print_table(verdict, options, out);
  fmt::print(
      "\nworst: lowest goodput of 0.2 s, as a share of before; stall: longest time with next to "
      "nothing; back:\nuntil it was what the fault leaves (within 30 %); >: it was not, for as "
      "long as was looked, as may be where\nthe machine is busy. A fault lasts {:g} s. Bytes and "
      "interruptions are judged, times are not.\n\n",
      options.fault_s);
  const double share = share_of_ports(verdict.mrc, options);
  if (share < kHeldByTheMachine)
    fmt::print(
        "{}\n\n",
        out.yellow(fmt::format(
            "This machine is the limit: before a fault the job received only {:.0f} % of what the "
            "ports carry.\nDips and times tell more about it than about the network; try --mbps "
            "{:.0f}.",
            100 * share, std::max(options.mbps * share, 1.0))));
  print_job("MRC", verdict.mrc);
  if (verdict.single_path) print_job("single path", *verdict.single_path);
  fmt::print("training: {} steps, loss {:.4f} to {:.4f}, {} the run without faults\n",
             verdict.mrc.losses.empty() ? 0 : verdict.mrc.losses.size() - 1, verdict.mrc.first_loss,
             verdict.mrc.last_loss,
             verdict.losses_are_equal() ? "bit by bit as in" : out.red("DIFFERENT from"));
  const bool passed = verdict.exit_code() == ExitCode::kOk;
  fmt::print("{} after {:.0f} s\n", passed ? out.green("PASSED") : out.red("FAILED"),
             verdict.seconds);
}

void print_json(const Verdict& verdict, const Options& options) {
  JsonWriter json(stdout);
  json.begin_object();
  json.value("schema", "mrc.demo/2");
  json.value("version", MRC_VERSION);
  json.value("verdict", verdict.exit_code() == ExitCode::kOk ? "passed" : "failed");
  json.value("hosts", options.hosts);
  json.value("planes", options.planes);
  json.value("port_bits_per_second", options.mbps * 1e6);
  json.value("fault_seconds", options.fault_s);
  json.value("losses_equal", verdict.losses_are_equal());
  json.value("seconds", verdict.seconds);
  write_drill(json, "mrc", verdict.mrc, options);
  if (verdict.single_path) {
    write_drill(json, "single_path", *verdict.single_path, options);
  } else {
    json.null("single_path");
  }
  json.end_object();
}

}  // namespace mrc::tool::demo
