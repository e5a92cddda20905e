#include "commands/sim/run_tuning.h"

#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>

#include "commands/sim/number_text.h"
#include "fabric/input_error.h"
#include "seal/layout.h"

namespace mrc::tool::simulator {
namespace {

using fabric::InputError;

// One parameter: where its value goes. Whole numbers stay whole.
template <typename Owner>
struct Parameter {
  const char* name;
  std::variant<bool Owner::*, std::uint8_t Owner::*, std::uint16_t Owner::*, std::uint32_t Owner::*,
               std::uint64_t Owner::*, sim::Time Owner::*, float Owner::*, double Owner::*>
      member;
};

using Nscc = core::NsccParameters;
constexpr Parameter<Nscc> kNscc[] = {
    {"disable_qa", &Nscc::disable_qa},
    {"adjust_bytes_threshold", &Nscc::adjust_bytes_threshold},
    {"adjust_period_threshold_ns", &Nscc::adjust_period_threshold_ns},
    {"base_rtt_ns", &Nscc::base_rtt_ns},
    {"eta", &Nscc::eta},
    {"fi", &Nscc::fi},
    {"fi_scale", &Nscc::fi_scale},
    {"gamma", &Nscc::gamma},
    {"max_md_jump", &Nscc::max_md_jump},
    {"max_cwnd", &Nscc::max_cwnd},
    {"qa_gate", &Nscc::qa_gate},
    {"qa_threshold_ns", &Nscc::qa_threshold_ns},
    {"target_delay_ns", &Nscc::target_delay_ns},
};

using Roce = sim::RoceOptions;
constexpr Parameter<Roce> kRoce[] = {
    {"timeout", &Roce::timeout},
    {"retries", &Roce::retries},
    {"ack_every", &Roce::ack_every},
    {"ecn_min_bytes", &Roce::ecn_min_bytes},
    {"ecn_max_bytes", &Roce::ecn_max_bytes},
    {"ecn_max_probability", &Roce::ecn_max_probability},
    {"pause_bytes", &Roce::pause_bytes},
};

using Dcqcn = sim::DcqcnParameters;
constexpr Parameter<Dcqcn> kDcqcn[] = {
    {"min_bps", &Dcqcn::min_bps},
    {"additive_bps", &Dcqcn::additive_bps},
    {"hyper_bps", &Dcqcn::hyper_bps},
    {"gain", &Dcqcn::gain},
    {"alpha_period_ps", &Dcqcn::alpha_period_ps},
    {"stage_period_ps", &Dcqcn::stage_period_ps},
    {"stage_bytes", &Dcqcn::stage_bytes},
    {"fast_recovery_stages", &Dcqcn::fast_recovery_stages},
    {"clamp_target", &Dcqcn::clamp_target},
    {"cnp_interval_ps", &Dcqcn::cnp_interval_ps},
};

using Seal = sim::SealCost;
constexpr Parameter<Seal> kSeal[] = {
    {"packet_ns", &Seal::packet_ns},
    {"byte_ps", &Seal::byte_ps},
    {"trimmed_ns", &Seal::trimmed_ns},
    {"processors", &Seal::processors},
};
static_assert(Seal::kHeaderBytes == seal::kSealHeaderLength && Seal::kTagBytes == seal::kTagLength);

using Shares = fabric::QueueShares;
constexpr Parameter<Shares> kShares[] = {
    {"ecn_min", &Shares::ecn_min},
    {"ecn_max", &Shares::ecn_max},
    {"capacity_trimming", &Shares::capacity_trimming},
    {"capacity_last_hop_trimming", &Shares::capacity_last_hop_trimming},
    {"capacity_dropping", &Shares::capacity_dropping},
    {"control_capacity", &Shares::control_capacity},
};

struct Assignment {
  std::string_view name;
  std::string_view value;
};

Assignment split(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos)
    throw InputError("'" + std::string(text) + "' is not like name=value");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

[[noreturn]] void refuse_value(const Assignment& assignment, const std::string& wanted) {
  throw InputError(std::string(assignment.name) + " cannot be '" + std::string(assignment.value) +
                   "'; write " + wanted);
}

template <typename Number>
Number parse(const Assignment& assignment) {
  if constexpr (std::is_same_v<Number, bool>) {
    if (assignment.value == "true" || assignment.value == "1") return true;
    if (assignment.value == "false" || assignment.value == "0") return false;
    refuse_value(assignment, "true or false");
  } else {
    const std::optional<Number> number = read_number<Number>(assignment.value);
    if (number && !(*number < Number{})) return *number;
    if constexpr (std::is_floating_point_v<Number>)
      refuse_value(assignment, "a number from 0 on");
    else
      refuse_value(assignment, "a whole number from 0 to " +
                                   std::to_string(std::numeric_limits<Number>::max()));
  }
}

// The name as a controller has it (mrc_ctl.h, `mrc ctl cc`): target_delay is target_delay_ns.
std::string_view without_unit(std::string_view name) {
  if (name.ends_with("_ns")) name.remove_suffix(3);
  return name;
}

// False when no parameter has this name.
template <typename Owner>
bool assign(std::span<const Parameter<Owner>> known, const Assignment& assignment, Owner& owner) {
  for (const Parameter<Owner>& parameter : known) {
    if (assignment.name != parameter.name && assignment.name != without_unit(parameter.name))
      continue;
    std::visit(
        [&](auto member) {
          using Number = std::remove_reference_t<decltype(owner.*member)>;
          // What refuses it names the unit.
          owner.*member = parse<Number>({parameter.name, assignment.value});
        },
        parameter.member);
    return true;
  }
  return false;
}

template <typename Owner>
std::string names(std::span<const Parameter<Owner>> known) {
  std::string list;
  for (const Parameter<Owner>& parameter : known)
    list += std::string(" ") + parameter.name;
  return list;
}

[[noreturn]] void refuse(const Assignment& assignment, const std::string& known) {
  throw InputError("'" + std::string(assignment.name) + "' is no parameter; there are" + known);
}

}  // namespace

void set_nscc(const std::string& text, core::NsccParameters& parameters) {
  const Assignment assignment = split(text);
  if (!assign<Nscc>(kNscc, assignment, parameters)) refuse(assignment, names<Nscc>(kNscc));
}

void set_roce(const std::string& text, sim::RoceOptions& options) {
  const Assignment assignment = split(text);
  if (assign<Roce>(kRoce, assignment, options)) return;
  if (!assign<Dcqcn>(kDcqcn, assignment, options.rates))
    refuse(assignment, names<Roce>(kRoce) + names<Dcqcn>(kDcqcn));
}

void set_seal(const std::string& text, sim::SealCost& cost) {
  const Assignment assignment = split(text);
  if (!assign<Seal>(kSeal, assignment, cost)) refuse(assignment, names<Seal>(kSeal));
  if (cost.processors == 0) throw InputError("processors cannot be '0'");
}

void set_queue(const std::string& text, fabric::QueueShares& shares) {
  const Assignment assignment = split(text);
  if (!assign<Shares>(kShares, assignment, shares)) refuse(assignment, names<Shares>(kShares));
}

}  // namespace mrc::tool::simulator
