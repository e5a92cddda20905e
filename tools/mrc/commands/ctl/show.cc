#include "commands/ctl/show.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "controller/drain.h"
#include "controller/profiles.h"
#include "controller/words.h"
#include "os/errors.h"
#include "wire/ev.h"

namespace mrc::tool::ctl {
namespace {

using Json = nlohmann::ordered_json;

Json limits_of(const controller::Session& session) {
  const mrc_ctl_device_attr& attr = session.limits();
  return {{"format_profiles", attr.ev.ev_max_fmt_profiles},
          {"ev_profiles", attr.ev.ev_max_profiles},
          {"evs", attr.ev.ev_max_count},
          {"evs_free", attr.ev.ev_free_count},
          {"evs_per_profile", attr.ev.ev_max_count_profile},
          {"ev_count_align", attr.ev.ev_count_align},
          {"ev_width_bits", attr.ev.ev_max_width},
          {"ev_batch_entries", attr.ev.ev_op_max_entries},
          {"cc_profiles", attr.cc.cc_max_profiles}};
}

Json ports_of(const controller::Session& session) {
  Json ports = Json::array();
  for (unsigned port = 1; port <= session.port_count(); ++port) {
    mrc_ctl_port_attr attr{};
    session.check(
        os::errno_of(mrc_ctl_query_port(session.context(), static_cast<std::uint8_t>(port), &attr,
                                        MRC_CTL_PORT_ADMIN_STATE)),
        fmt::format("port {}", port));
    const bool enabled = attr.port_admin_state == MRC_CTL_PORT_ADMIN_ENABLED;
    ports.push_back({{"port", port}, {"admin_state", enabled ? "enabled" : "disabled"}});
  }
  return ports;
}

struct FormatReading {
  mrc_ctl_ev_fmt_profile_attr attr{};
  std::vector<std::uint8_t> widths;
};

FormatReading read_format(const controller::Session& session, std::uint64_t id) {
  std::vector<mrc_ctl_ev_fmt_field> fields(8 * MRC_CTL_EV_MAX_BYTES);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_QUERY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields.data();
  attr.ev_fmt_op.fmt_field_count = static_cast<int>(fields.size());
  session.check(os::errno_of(mrc_ctl_query_ev_fmt_profile(session.context(), id, &attr,
                                                          MRC_CTL_EV_FMT_PROFILE_CUR_STATE |
                                                              MRC_CTL_EV_FMT_PROFILE_MODE |
                                                              MRC_CTL_EV_FMT_PROFILE_OP)),
                fmt::format("EV format {}", id));
  FormatReading read{.attr = attr, .widths = {}};
  for (int i = 0; i < attr.ev_fmt_op.fmt_field_count; ++i)
    read.widths.push_back(static_cast<std::uint8_t>(fields[static_cast<std::size_t>(i)].width));
  return read;
}

Json format_of(const controller::Session& session, std::uint64_t id) {
  const FormatReading format = read_format(session, id);
  return {{"id", id},
          {"state", controller::profile_state_text(format.attr.cur_profile_state)},
          {"mode", controller::format_mode_text(format.attr.ev_fmt_mode)},
          {"widths", format.widths}};
}

// What of a profile with fields, whose EVs are compact, stands in packets.
class Expansion {
 public:
  Expansion(const controller::Session& session, std::uint64_t profile, std::uint64_t format) {
    for (const mrc_ctl_ev_field& field : controller::read_fields(session, profile))
      fields_.push_back({.width = field.width,
                         .init_val = field.init_val,
                         .min_val = field.min_val,
                         .max_val = field.max_val,
                         .mask = field.mask});
    if (fields_.empty()) return;
    format_ = read_format(session, format);
    // Another controller may change it between two questions.
    if (format_.widths.size() < fields_.size()) fields_.clear();
    srv6_ = format_.attr.ev_fmt_mode == MRC_CTL_EV_FMT_MODE_SRV6;
  }

  // Nothing where the EV is what stands in the packet.
  std::string text(const mrc_ctl_ev& ev) const {
    if (fields_.empty()) return "";
    wire::EvValue compact;
    std::copy(std::begin(ev.val), std::end(ev.val), compact.bytes.begin());
    // The kind says where the bits go, not which they are.
    const wire::EvFormat format{.kind = wire::EvKind::kSrv6Segment, .widths = format_.widths};
    const Result<wire::EvValue> expanded = wire::expand_ev(format, fields_, compact);
    if (!expanded.ok()) return "";
    mrc_ctl_ev shown = ev;
    std::copy(expanded.value().bytes.begin(), expanded.value().bytes.end(), std::begin(shown.val));
    return controller::ev_text(shown, srv6_);
  }

 private:
  std::vector<wire::EvField> fields_;
  FormatReading format_;
  bool srv6_ = false;
};

Json fields_of(const controller::Session& session, std::uint64_t id) {
  Json list = Json::array();
  for (const mrc_ctl_ev_field& field : controller::read_fields(session, id))
    list.push_back(controller::field_text(field));
  return list;
}

Json cc_profile_of(const controller::Session& session, std::uint64_t id) {
  mrc_ctl_cc_profile_attr attr{};
  session.check(os::errno_of(mrc_ctl_query_cc_profile(
                    session.context(), id, &attr,
                    MRC_CTL_CC_PROFILE_CUR_STATE | MRC_CTL_CC_PROFILE_ALGORITHM |
                        MRC_CTL_CC_PROFILE_CONFIG | MRC_CTL_CC_PROFILE_VENDOR_CFG)),
                fmt::format("CC profile {}", id));
  Json settings = Json::object();
  if (attr.cc_config != nullptr) {
    for (const auto& [name, value] :
         controller::cc_values(*static_cast<const mrc_ctl_cc_nscc_cfg*>(attr.cc_config)))
      settings[name] = value;
  }
  return {{"id", id},
          {"state", controller::profile_state_text(attr.cur_profile_state)},
          {"algorithm", attr.algorithm == nullptr ? "none" : attr.algorithm},
          {"trimming", controller::trimming_text(attr.vendor_cfg[0])},
          {"settings", settings}};
}

std::string joined(const Json& list) {
  std::string text;
  for (const Json& item : list)
    text += (text.empty() ? "" : " ") + (item.is_string() ? item.get<std::string>() : item.dump());
  return text.empty() ? "-" : text;
}

void print_cc(const Json& profile) {
  fmt::print("CC profile {}: {}, {}", profile["id"].dump(), profile["state"].get<std::string>(),
             profile["algorithm"].get<std::string>());
  for (const auto& [name, value] : profile["settings"].items()) {
    if (value.get<double>() != 0) fmt::print(", {} {:g}", name, value.get<double>());
  }
  fmt::print("\n");
}

}  // namespace

Json describe_ev_profile(const controller::Session& session, std::uint64_t id, bool evs) {
  if (controller::state_of(session, controller::Kind::kEv, id) == MRC_CTL_PROFILE_INIT)
    throw controller::CtlError(fmt::format("there is no EV profile {}", id));
  mrc_ctl_ev_profile_attr attr{};
  session.check(os::errno_of(mrc_ctl_query_ev_profile(
                    session.context(), id, &attr,
                    MRC_CTL_EV_PROFILE_CUR_STATE | MRC_CTL_EV_PROFILE_MODE |
                        MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
                        MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK)),
                fmt::format("EV profile {}", id));
  Json profile = {{"id", id},
                  {"state", controller::profile_state_text(attr.cur_profile_state)},
                  {"mode", controller::ev_mode_text(attr.ev_mode)},
                  {"format", attr.ev_fmt_profile_id},
                  {"count", attr.ev_count},
                  {"min_active", attr.ev_min_active},
                  {"events", controller::event_mask_text(attr.ev_event_mask)},
                  {"fields", fields_of(session, id)}};
  const bool srv6 = controller::shows_addresses(session, id);
  const Expansion expansion(session, id, attr.ev_fmt_profile_id);
  std::map<std::string, unsigned> states;
  Json list = Json::array();
  for (const mrc_ctl_ev_op_entry& entry : controller::read_evs(session, id)) {
    const char* const state =
        entry.ev.port == 0 ? "unpopulated" : controller::ev_state_text(entry.state);
    ++states[state];
    list.push_back(
        {{"ev", controller::ev_text(entry.ev, srv6)}, {"port", entry.ev.port}, {"state", state}});
    if (const std::string text = expansion.text(entry.ev); !text.empty())
      list.back()["in_packets"] = text;
  }
  profile["states"] = states;
  if (evs) profile["evs"] = list;
  return profile;
}

Json describe(const controller::Session& session, bool evs) {
  Json document = {{"schema", "mrc-ctl-show"},    {"version", 1},
                   {"device", session.device()},  {"limits", limits_of(session)},
                   {"ports", ports_of(session)},  {"drained", Json::array()},
                   {"formats", Json::array()},    {"ev_profiles", Json::array()},
                   {"cc_profiles", Json::array()}};
  for (const std::string& part : controller::drained_parts(session.directory()))
    document["drained"].push_back(part);
  for (const std::uint64_t id : session.format_ids())
    document["formats"].push_back(format_of(session, id));
  for (const std::uint64_t id : session.ev_ids())
    document["ev_profiles"].push_back(describe_ev_profile(session, id, evs));
  for (const std::uint64_t id : session.cc_ids())
    document["cc_profiles"].push_back(cc_profile_of(session, id));
  return document;
}

void print_ev_profile(const Json& profile) {
  fmt::print("EV profile {}: {}, {}, format {}, {} EVs, at least {} in use, events {}, fields {}\n",
             profile["id"].dump(), profile["state"].get<std::string>(),
             profile["mode"].get<std::string>(), profile["format"].dump(), profile["count"].dump(),
             profile["min_active"].dump(), profile["events"].get<std::string>(),
             joined(profile["fields"]));
  if (!profile.contains("evs")) {
    for (const auto& [state, count] : profile["states"].items())
      fmt::print("  {} {}\n", count.dump(), state);
    return;
  }
  std::size_t position = 0;
  for (const Json& ev : profile["evs"]) {
    const std::string in_packets =
        ev.contains("in_packets") ? ", in packets " + ev["in_packets"].get<std::string>() : "";
    fmt::print("  {:>4}  {:<40} {}{}\n", position++, ev["ev"].get<std::string>(),
               ev["state"].get<std::string>(), in_packets);
  }
}

void print_description(const Json& document) {
  const Json& limits = document["limits"];
  fmt::print("{}: {} of {} EVs free, {} in a profile, {} bits; {} profiles, {} formats, {} CC\n",
             document["device"].get<std::string>(), limits["evs_free"].dump(), limits["evs"].dump(),
             limits["evs_per_profile"].dump(), limits["ev_width_bits"].dump(),
             limits["ev_profiles"].dump(), limits["format_profiles"].dump(),
             limits["cc_profiles"].dump());
  for (const Json& port : document["ports"])
    fmt::print("port {}: {}\n", port["port"].dump(), port["admin_state"].get<std::string>());
  if (!document["drained"].empty()) fmt::print("drained: {}\n", joined(document["drained"]));
  for (const Json& format : document["formats"]) {
    fmt::print("EV format {}: {}, {}, widths {}\n", format["id"].dump(),
               format["state"].get<std::string>(), format["mode"].get<std::string>(),
               joined(format["widths"]));
  }
  for (const Json& profile : document["ev_profiles"])
    print_ev_profile(profile);
  for (const Json& profile : document["cc_profiles"])
    print_cc(profile);
}

}  // namespace mrc::tool::ctl
