// Creating, removing and changing profiles and ports, step by step as the API wants it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "controller/session.h"

namespace mrc::controller {

// `place` is where a spec was written ("fabric.toml:3:1"), for messages; it is no part of its
// value.
struct FormatSpec {
  std::uint64_t id = 0;
  std::string place{};
  mrc_ctl_ev_fmt_mode mode = MRC_CTL_EV_FMT_MODE_STEV;
  std::vector<std::uint8_t> widths;
};

struct EvSpec {
  std::uint64_t id = 0;
  std::string place{};
  mrc_ctl_ev_mode mode = MRC_CTL_EV_MODE_AUTO;
  bool has_format = false;
  std::uint64_t format = 0;
  std::uint32_t count = 0;  // 0: as many as there are in `evs`, or the device's choice
  std::uint32_t min_active = 0;
  int event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
  std::vector<mrc_ctl_ev_field> fields;
  std::vector<mrc_ctl_ev> evs;  // explicit profiles
};

struct CcSpec {
  std::uint64_t id = 0;
  std::string place{};
  const char* algorithm = nullptr;  // none: no congestion control
  mrc_ctl_cc_nscc_cfg config{};
  std::uint8_t trimming = 0;  // as in the first vendor byte
};

// Whether they ask for the same, or are the same.
bool same(const mrc_ctl_ev& a, const mrc_ctl_ev& b);
bool same(const FormatSpec& a, const FormatSpec& b);
bool same(const EvSpec& a, const EvSpec& b);
bool same(const CcSpec& a, const CcSpec& b);

// From INIT to ONLINE. What fails on the way leaves nothing behind. CtlError.
void create(const Session& session, const FormatSpec& spec);
void create(const Session& session, const EvSpec& spec);
void create(const Session& session, const CcSpec& spec);

enum class Kind : std::uint8_t { kFormat, kEv, kCc };
// One step of a profile's life.
void set_state(const Session& session, Kind kind, std::uint64_t id, mrc_ctl_profile_state state);
// From whichever state to INIT.
void remove(const Session& session, Kind kind, std::uint64_t id);
// CtlError if there is one.
void refuse_existing(const Session& session, Kind kind, std::uint64_t id);
mrc_ctl_profile_state state_of(const Session& session, Kind kind, std::uint64_t id);

void set_port(const Session& session, unsigned port, bool enabled);
bool port_enabled(const Session& session, unsigned port);

// All EVs of a profile with their states.
std::vector<mrc_ctl_ev_op_entry> read_evs(const Session& session, std::uint64_t id);

// The fields of a generated profile; none for others.
std::vector<mrc_ctl_ev_field> read_fields(const Session& session, std::uint64_t id);
// Whether its EVs are written as SRv6 addresses. False for a profile that does not exist.
bool shows_addresses(const Session& session, std::uint64_t id);

// Which EVs of a profile are meant: "all", "3", "8-15" (positions), "port=2", or an EV as
// `mrc ctl show` prints it. InputError for words that mean nothing.
std::vector<mrc_ctl_ev> select_evs(const std::vector<mrc_ctl_ev_op_entry>& all,
                                   const std::vector<std::string>& words);
// The same as far as it goes: words that mean nothing here and EVs that are not there are left out.
std::vector<mrc_ctl_ev> matching_evs(const std::vector<mrc_ctl_ev_op_entry>& all,
                                     const std::vector<std::string>& words);
void set_ev_states(const Session& session, std::uint64_t id, const std::vector<mrc_ctl_ev>& evs,
                   mrc_ctl_ev_state state);

}  // namespace mrc::controller
