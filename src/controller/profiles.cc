#include "controller/profiles.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "controller/words.h"
#include "fabric/input_error.h"
#include "os/errors.h"

namespace mrc::controller {
namespace {

using fabric::InputError;

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kFormat:
      return "EV format";
    case Kind::kEv:
      return "EV profile";
    case Kind::kCc:
      break;
  }
  return "CC profile";
}

std::string named(Kind kind, std::uint64_t id) { return fmt::format("{} {}", kind_text(kind), id); }

int change_state(const Session& session, Kind kind, std::uint64_t id, mrc_ctl_profile_state state) {
  if (kind == Kind::kFormat) {
    mrc_ctl_ev_fmt_profile_attr attr{};
    attr.profile_state = state;
    return os::errno_of(
        mrc_ctl_modify_ev_fmt_profile(session.context(), id, &attr, MRC_CTL_EV_FMT_PROFILE_STATE));
  }
  if (kind == Kind::kEv) {
    mrc_ctl_ev_profile_attr attr{};
    attr.profile_state = state;
    return os::errno_of(
        mrc_ctl_modify_ev_profile(session.context(), id, &attr, MRC_CTL_EV_PROFILE_STATE));
  }
  mrc_ctl_cc_profile_attr attr{};
  attr.profile_state = state;
  return os::errno_of(
      mrc_ctl_modify_cc_profile(session.context(), id, &attr, MRC_CTL_CC_PROFILE_STATE));
}

// Goes on with a profile that is OFFLINE; if that fails, there is no profile.
template <typename Step>
void finish_or_remove(const Session& session, Kind kind, std::uint64_t id, const Step& step) {
  const int error = step();
  if (error == 0) return;
  change_state(session, kind, id, MRC_CTL_PROFILE_INIT);
  session.check(error, named(kind, id));
}

int fill_explicit(const Session& session, const EvSpec& spec) {
  const std::size_t most = session.limits().ev.ev_op_max_entries;
  for (std::size_t from = 0; from < spec.evs.size(); from += most) {
    std::vector<mrc_ctl_ev_op_entry> entries;
    for (std::size_t i = from; i < std::min(from + most, spec.evs.size()); ++i) {
      mrc_ctl_ev_op_entry entry{};
      entry.ev = MRC_CTL_EV_UNPOPULATED;
      entry.ev_new = spec.evs[i];
      entries.push_back(entry);
    }
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = MRC_CTL_EV_OP_REPLACE_EV;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    const int error = os::errno_of(
        mrc_ctl_modify_ev_profile(session.context(), spec.id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
    if (error != 0) return error;
  }
  return 0;
}

bool is_srv6(const Session& session, std::uint64_t format) {
  mrc_ctl_ev_fmt_profile_attr attr{};
  return mrc_ctl_query_ev_fmt_profile(session.context(), format, &attr,
                                      MRC_CTL_EV_FMT_PROFILE_MODE) == 0 &&
         attr.ev_fmt_mode == MRC_CTL_EV_FMT_MODE_SRV6;
}

void refuse_unknown_port(const Session& session, unsigned port) {
  if (port < 1 || port > session.port_count())
    throw InputError(fmt::format("{} has ports 1 to {}", session.device(), session.port_count()));
}

bool parse_positions(const std::string& word, std::size_t& first, std::size_t& last) {
  const char* const end = word.data() + word.size();
  auto part = std::from_chars(word.data(), end, first);
  if (part.ec != std::errc{}) return false;
  last = first;
  if (part.ptr == end) return true;
  if (*part.ptr != '-') return false;
  part = std::from_chars(part.ptr + 1, end, last);
  return part.ec == std::errc{} && part.ptr == end;
}

void add_selected(const std::vector<mrc_ctl_ev_op_entry>& all, const std::string& word,
                  std::vector<mrc_ctl_ev>& out) {
  std::size_t first = 0;
  std::size_t last = 0;
  if (word == "all") {
    for (const auto& entry : all)
      out.push_back(entry.ev);
  } else if (word.starts_with("port=")) {
    const std::string number = word.substr(5);
    if (!parse_positions(number, first, last) || first != last)
      throw InputError(fmt::format("'{}' is not port=N", word));
    for (const auto& entry : all) {
      if (entry.ev.port == first) out.push_back(entry.ev);
    }
  } else if (word.find(':') != std::string::npos) {
    out.push_back(parse_ev(word));
  } else if (parse_positions(word, first, last)) {
    if (first > last || last >= all.size())
      throw InputError(
          fmt::format("'{}': the profile has EVs 0 to {}", word, all.empty() ? 0 : all.size() - 1));
    for (std::size_t i = first; i <= last; ++i)
      out.push_back(all[i].ev);
  } else {
    throw InputError(fmt::format(
        "'{}' names no EVs: use all, a position, FROM-TO, port=N, or PORT:VALUE", word));
  }
}

}  // namespace

bool same(const mrc_ctl_ev& a, const mrc_ctl_ev& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

bool same(const FormatSpec& a, const FormatSpec& b) {
  return a.id == b.id && a.mode == b.mode && a.widths == b.widths;
}

bool same(const EvSpec& a, const EvSpec& b) {
  const auto same_field = [](const mrc_ctl_ev_field& left, const mrc_ctl_ev_field& right) {
    return std::memcmp(&left, &right, sizeof left) == 0;
  };
  const auto same_ev = [](const mrc_ctl_ev& left, const mrc_ctl_ev& right) {
    return same(left, right);
  };
  return a.id == b.id && a.mode == b.mode && a.has_format == b.has_format && a.format == b.format &&
         a.count == b.count && a.min_active == b.min_active && a.event_mask == b.event_mask &&
         std::equal(a.fields.begin(), a.fields.end(), b.fields.begin(), b.fields.end(),
                    same_field) &&
         std::equal(a.evs.begin(), a.evs.end(), b.evs.begin(), b.evs.end(), same_ev);
}

bool same(const CcSpec& a, const CcSpec& b) {
  // parse_algorithm() knows one name.
  return a.id == b.id && (a.algorithm == nullptr) == (b.algorithm == nullptr) &&
         cc_values(a.config) == cc_values(b.config) && a.trimming == b.trimming;
}

void refuse_existing(const Session& session, Kind kind, std::uint64_t id) {
  if (state_of(session, kind, id) == MRC_CTL_PROFILE_INIT) return;
  throw CtlError(fmt::format("there is already an {0}; `mrc ctl ... delete {1}` removes it",
                             named(kind, id), id));
}

mrc_ctl_profile_state state_of(const Session& session, Kind kind, std::uint64_t id) {
  int error = 0;
  mrc_ctl_profile_state state{};
  if (kind == Kind::kFormat) {
    mrc_ctl_ev_fmt_profile_attr attr{};
    error = os::errno_of(mrc_ctl_query_ev_fmt_profile(session.context(), id, &attr,
                                                      MRC_CTL_EV_FMT_PROFILE_CUR_STATE));
    state = attr.cur_profile_state;
  } else if (kind == Kind::kEv) {
    mrc_ctl_ev_profile_attr attr{};
    error = os::errno_of(
        mrc_ctl_query_ev_profile(session.context(), id, &attr, MRC_CTL_EV_PROFILE_CUR_STATE));
    state = attr.cur_profile_state;
  } else {
    mrc_ctl_cc_profile_attr attr{};
    error = os::errno_of(
        mrc_ctl_query_cc_profile(session.context(), id, &attr, MRC_CTL_CC_PROFILE_CUR_STATE));
    state = attr.cur_profile_state;
  }
  session.check(error, named(kind, id));
  return state;
}

void set_state(const Session& session, Kind kind, std::uint64_t id, mrc_ctl_profile_state state) {
  session.check(change_state(session, kind, id, state), named(kind, id));
}

void remove(const Session& session, Kind kind, std::uint64_t id) {
  const mrc_ctl_profile_state state = state_of(session, kind, id);
  if (state == MRC_CTL_PROFILE_INIT) throw CtlError(fmt::format("there is no {}", named(kind, id)));
  if (state == MRC_CTL_PROFILE_ONLINE) set_state(session, kind, id, MRC_CTL_PROFILE_OFFLINE);
  set_state(session, kind, id, MRC_CTL_PROFILE_INIT);
}

void create(const Session& session, const FormatSpec& spec) {
  refuse_existing(session, Kind::kFormat, spec.id);
  mrc_ctl_ev_fmt_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_fmt_mode = spec.mode;
  session.check(os::errno_of(mrc_ctl_modify_ev_fmt_profile(
                    session.context(), spec.id, &attr,
                    MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE)),
                named(Kind::kFormat, spec.id));
  std::vector<mrc_ctl_ev_fmt_field> fields;
  for (const std::uint8_t width : spec.widths)
    fields.push_back({width});
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
  attr.ev_fmt_op.fmt_fields = fields.data();
  attr.ev_fmt_op.fmt_field_count = static_cast<int>(fields.size());
  finish_or_remove(session, Kind::kFormat, spec.id, [&] {
    return os::errno_of(
        mrc_ctl_modify_ev_fmt_profile(session.context(), spec.id, &attr,
                                      MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_OP));
  });
}

void create(const Session& session, const EvSpec& spec) {
  refuse_existing(session, Kind::kEv, spec.id);
  mrc_ctl_ev_profile_attr attr{};
  int mask = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE;
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.ev_mode = spec.mode;
  if (spec.has_format) {
    attr.ev_fmt_profile_id = spec.format;
    mask |= MRC_CTL_EV_PROFILE_FMT_ID;
  }
  attr.ev_count = spec.count != 0 ? spec.count : static_cast<std::uint32_t>(spec.evs.size());
  if (attr.ev_count != 0) mask |= MRC_CTL_EV_PROFILE_COUNT;
  std::vector<mrc_ctl_ev_field> fields = spec.fields;
  if (!fields.empty()) {
    attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
    attr.ev_fields_op.fields = fields.data();
    attr.ev_fields_op.field_count = static_cast<int>(fields.size());
    mask |= MRC_CTL_EV_PROFILE_EV_FIELDS_OP;
  }
  session.check(os::errno_of(mrc_ctl_modify_ev_profile(session.context(), spec.id, &attr, mask)),
                named(Kind::kEv, spec.id));
  finish_or_remove(session, Kind::kEv, spec.id, [&] { return fill_explicit(session, spec); });
  attr = {};
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.ev_min_active = spec.min_active;
  attr.ev_event_mask = spec.event_mask;
  finish_or_remove(session, Kind::kEv, spec.id, [&] {
    return os::errno_of(mrc_ctl_modify_ev_profile(
        session.context(), spec.id, &attr,
        MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK));
  });
}

void create(const Session& session, const CcSpec& spec) {
  refuse_existing(session, Kind::kCc, spec.id);
  mrc_ctl_cc_profile_attr attr{};
  attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
  attr.algorithm = spec.algorithm;
  session.check(os::errno_of(mrc_ctl_modify_cc_profile(
                    session.context(), spec.id, &attr,
                    MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_ALGORITHM)),
                named(Kind::kCc, spec.id));
  attr.profile_state = MRC_CTL_PROFILE_ONLINE;
  attr.cc_config = &spec.config;
  attr.vendor_cfg[0] = spec.trimming;
  int mask = MRC_CTL_CC_PROFILE_STATE | MRC_CTL_CC_PROFILE_CONFIG;
  if (spec.trimming != 0) mask |= MRC_CTL_CC_PROFILE_VENDOR_CFG;
  finish_or_remove(session, Kind::kCc, spec.id, [&] {
    return os::errno_of(mrc_ctl_modify_cc_profile(session.context(), spec.id, &attr, mask));
  });
}

void set_port(const Session& session, unsigned port, bool enabled) {
  refuse_unknown_port(session, port);
  mrc_ctl_port_attr attr{enabled ? MRC_CTL_PORT_ADMIN_ENABLED : MRC_CTL_PORT_ADMIN_DISABLED};
  session.check(os::errno_of(mrc_ctl_modify_port(session.context(), static_cast<std::uint8_t>(port),
                                                 &attr, MRC_CTL_PORT_ADMIN_STATE)),
                fmt::format("port {}", port));
}

bool port_enabled(const Session& session, unsigned port) {
  refuse_unknown_port(session, port);
  mrc_ctl_port_attr attr{};
  session.check(os::errno_of(mrc_ctl_query_port(session.context(), static_cast<std::uint8_t>(port),
                                                &attr, MRC_CTL_PORT_ADMIN_STATE)),
                fmt::format("port {}", port));
  return attr.port_admin_state == MRC_CTL_PORT_ADMIN_ENABLED;
}

std::vector<mrc_ctl_ev_op_entry> read_evs(const Session& session, std::uint64_t id) {
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
  std::vector<mrc_ctl_ev_op_entry> entries;
  int error = E2BIG;
  // Another controller may make it longer between asking and reading.
  while (error == E2BIG) {
    entries.resize(static_cast<std::size_t>(attr.ev_op.entry_count));
    attr.ev_op.entries = entries.data();
    error = os::errno_of(
        mrc_ctl_query_ev_profile(session.context(), id, &attr, MRC_CTL_EV_PROFILE_EV_OP));
  }
  session.check(error, named(Kind::kEv, id));
  entries.resize(static_cast<std::size_t>(attr.ev_op.entry_count));
  return entries;
}

std::vector<mrc_ctl_ev_field> read_fields(const Session& session, std::uint64_t id) {
  std::vector<mrc_ctl_ev_field> fields(8 * MRC_CTL_EV_MAX_BYTES);
  mrc_ctl_ev_profile_attr attr{};
  attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS;
  attr.ev_fields_op.fields = fields.data();
  attr.ev_fields_op.field_count = static_cast<int>(fields.size());
  session.check(os::errno_of(mrc_ctl_query_ev_profile(session.context(), id, &attr,
                                                      MRC_CTL_EV_PROFILE_EV_FIELDS_OP)),
                named(Kind::kEv, id));
  fields.resize(static_cast<std::size_t>(attr.ev_fields_op.field_count));
  return fields;
}

bool shows_addresses(const Session& session, std::uint64_t id) {
  mrc_ctl_ev_profile_attr attr{};
  return mrc_ctl_query_ev_profile(session.context(), id, &attr, MRC_CTL_EV_PROFILE_FMT_ID) == 0 &&
         is_srv6(session, attr.ev_fmt_profile_id) && read_fields(session, id).empty();
}

std::vector<mrc_ctl_ev> select_evs(const std::vector<mrc_ctl_ev_op_entry>& all,
                                   const std::vector<std::string>& words) {
  std::vector<mrc_ctl_ev> selected;
  for (const std::string& word : words)
    add_selected(all, word, selected);
  std::vector<mrc_ctl_ev> once;
  for (const mrc_ctl_ev& ev : selected) {
    if (std::none_of(once.begin(), once.end(), [&](const auto& known) { return same(known, ev); }))
      once.push_back(ev);
  }
  if (all.empty())
    throw InputError("there is no such EV profile, or it has no EVs; `mrc ctl show` lists them");
  if (once.empty()) throw InputError("the profile has no EV that is meant by that");
  return once;
}

std::vector<mrc_ctl_ev> matching_evs(const std::vector<mrc_ctl_ev_op_entry>& all,
                                     const std::vector<std::string>& words) {
  std::vector<mrc_ctl_ev> meant;
  for (const std::string& word : words) {
    try {
      add_selected(all, word, meant);
    } catch (const InputError&) {
      continue;
    }
  }
  std::erase_if(meant, [&](const mrc_ctl_ev& ev) {
    return std::none_of(all.begin(), all.end(),
                        [&](const mrc_ctl_ev_op_entry& entry) { return same(entry.ev, ev); });
  });
  return meant;
}

void set_ev_states(const Session& session, std::uint64_t id, const std::vector<mrc_ctl_ev>& evs,
                   mrc_ctl_ev_state state) {
  const std::size_t most = session.limits().ev.ev_op_max_entries;
  for (std::size_t from = 0; from < evs.size(); from += most) {
    std::vector<mrc_ctl_ev_op_entry> entries;
    for (std::size_t i = from; i < std::min(from + most, evs.size()); ++i) {
      mrc_ctl_ev_op_entry entry{};
      entry.ev = evs[i];
      entry.state = state;
      entry.flags = MRC_CTL_EV_OP_F_ALL_COPIES;
      entries.push_back(entry);
    }
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = MRC_CTL_EV_OP_MODIFY_EV_STATE;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    session.check(os::errno_of(mrc_ctl_modify_ev_profile(session.context(), id, &attr,
                                                         MRC_CTL_EV_PROFILE_EV_OP)),
                  named(Kind::kEv, id));
  }
}

}  // namespace mrc::controller
