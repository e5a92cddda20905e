// A device of its own with a controller context on it, and short ways to say what a controller
// says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "api/handles.h"
#include "api/verbs_types.h"
#include "mrc_ctl.h"
#include "nic/device.h"
#include "node/config.h"
#include "support/temporary_directory.h"
#include "unit/api/why.h"

namespace mrc::api::test {

inline mrc_ctl_ev stev(std::uint32_t value, std::uint8_t port) {
  mrc_ctl_ev ev{};
  for (unsigned i = 0; i < 4; ++i)
    ev.val[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i) & 0xFF);
  ev.port = port;
  return ev;
}

inline mrc_ctl_ev_op_entry replace(const mrc_ctl_ev& old_ev, const mrc_ctl_ev& new_ev,
                                   std::uint32_t flags = 0) {
  mrc_ctl_ev_op_entry entry{};
  entry.ev = old_ev;
  entry.ev_new = new_ev;
  entry.flags = flags;
  return entry;
}

inline mrc_ctl_ev_op_entry with_state(const mrc_ctl_ev& ev, mrc_ctl_ev_state state,
                                      std::uint32_t flags = 0) {
  mrc_ctl_ev_op_entry entry{};
  entry.ev = ev;
  entry.state = state;
  entry.flags = flags;
  return entry;
}

class CtlTest : public testing::Test {
 protected:
  using Widths = std::vector<std::uint8_t>;
  using Entries = std::vector<mrc_ctl_ev_op_entry>;
  using Fields = std::vector<mrc_ctl_ev_field>;

  static constexpr int kFmtState = MRC_CTL_EV_FMT_PROFILE_STATE;
  static constexpr int kFmtMode = MRC_CTL_EV_FMT_PROFILE_MODE;
  static constexpr int kFmtOp = MRC_CTL_EV_FMT_PROFILE_OP;
  static constexpr int kEvState = MRC_CTL_EV_PROFILE_STATE;
  static constexpr int kCreate = MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
                                 MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT;
  static constexpr int kOnline =
      MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MIN_ACTIVE | MRC_CTL_EV_PROFILE_EVENT_MASK;

  CtlTest() {
    std::filesystem::permissions(directory_.path(), std::filesystem::perms(0755));
    node::DeviceConfig config = node::default_device();
    config.directory = directory_ / "mrc0";
    // Apart from others on this machine, most of the time; the device steps aside otherwise.
    config.udp_port = static_cast<std::uint16_t>(20'000 + getpid() % 100 * 256);
    std::string error;
    context_.device = nic::Device::open(config, error);
    if (context_.device == nullptr) {
      ADD_FAILURE() << error;
      std::abort();
    }
    verbs_.vctx.context.num_comp_vectors = 1;
    context_.verbs = &verbs_;
    context_.api_version = MRC_API_CURRENT_VERSION;
  }

  mrc_context* ctx() { return &context_; }
  node::NodeState& node() { return context_.device->node(); }
  std::uint64_t version() { return node().snapshot()->version; }

  // --- Formats

  int modify_format(std::uint64_t id, int mask, mrc_ctl_ev_fmt_profile_attr attr) {
    return why(mrc_ctl_modify_ev_fmt_profile(ctx(), id, &attr, mask));
  }
  int set_format_state(std::uint64_t id, mrc_ctl_profile_state state) {
    mrc_ctl_ev_fmt_profile_attr attr{};
    attr.profile_state = state;
    return modify_format(id, kFmtState, attr);
  }
  int set_format_fields(std::uint64_t id, const Widths& widths, int extra_mask = 0) {
    std::vector<mrc_ctl_ev_fmt_field> fields;
    for (const std::uint8_t width : widths)
      fields.push_back({width});
    mrc_ctl_ev_fmt_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_ONLINE;
    attr.ev_fmt_op.op = MRC_CTL_EV_FMT_OP_MODIFY_FIELDS;
    attr.ev_fmt_op.fmt_fields = fields.data();
    attr.ev_fmt_op.fmt_field_count = static_cast<int>(fields.size());
    return modify_format(id, kFmtOp | extra_mask, attr);
  }
  int create_format(std::uint64_t id, mrc_ctl_ev_fmt_mode mode) {
    mrc_ctl_ev_fmt_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.ev_fmt_mode = mode;
    return modify_format(id, kFmtState | kFmtMode, attr);
  }
  void online_format(std::uint64_t id, mrc_ctl_ev_fmt_mode mode, const Widths& widths) {
    ASSERT_EQ(create_format(id, mode), 0);
    ASSERT_EQ(set_format_fields(id, widths, kFmtState), 0);
  }
  mrc_ctl_profile_state format_state(std::uint64_t id) {
    mrc_ctl_ev_fmt_profile_attr attr{};
    EXPECT_EQ(why(mrc_ctl_query_ev_fmt_profile(ctx(), id, &attr, MRC_CTL_EV_FMT_PROFILE_CUR_STATE)),
              0);
    return attr.cur_profile_state;
  }

  // --- EV profiles

  int modify_ev(std::uint64_t id, int mask, mrc_ctl_ev_profile_attr& attr) {
    return why(mrc_ctl_modify_ev_profile(ctx(), id, &attr, mask));
  }
  static mrc_ctl_ev_profile_attr create_attr(mrc_ctl_ev_mode mode, std::uint64_t format,
                                             std::uint32_t count) {
    mrc_ctl_ev_profile_attr attr{};
    attr.profile_state = MRC_CTL_PROFILE_OFFLINE;
    attr.ev_mode = mode;
    attr.ev_fmt_profile_id = format;
    attr.ev_count = count;
    return attr;
  }
  static void put_fields(mrc_ctl_ev_profile_attr& attr, Fields& fields) {
    attr.ev_fields_op.op = MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS;
    attr.ev_fields_op.fields = fields.data();
    attr.ev_fields_op.field_count = static_cast<int>(fields.size());
  }
  int create_ev(std::uint64_t id, mrc_ctl_ev_mode mode, std::uint64_t format, std::uint32_t count,
                Fields fields = {}) {
    mrc_ctl_ev_profile_attr attr = create_attr(mode, format, count);
    put_fields(attr, fields);
    return modify_ev(id, kCreate | (fields.empty() ? 0 : MRC_CTL_EV_PROFILE_EV_FIELDS_OP), attr);
  }
  int set_ev_state(std::uint64_t id, mrc_ctl_profile_state state, int mask = kEvState) {
    mrc_ctl_ev_profile_attr attr{};
    attr.profile_state = state;
    attr.ev_min_active = 1;
    attr.ev_event_mask = MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD;
    return modify_ev(id, mask, attr);
  }
  int ev_online(std::uint64_t id) { return set_ev_state(id, MRC_CTL_PROFILE_ONLINE, kOnline); }
  int ev_op(std::uint64_t id, mrc_ctl_ev_op op, Entries& entries) {
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = op;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    return modify_ev(id, MRC_CTL_EV_PROFILE_EV_OP, attr);
  }
  int replace_evs(std::uint64_t id, Entries entries) {
    return ev_op(id, MRC_CTL_EV_OP_REPLACE_EV, entries);
  }
  int set_states(std::uint64_t id, Entries entries) {
    return ev_op(id, MRC_CTL_EV_OP_MODIFY_EV_STATE, entries);
  }
  // All EVs of a profile with their states.
  Entries ev_array(std::uint64_t id) {
    Entries entries(1'024);
    mrc_ctl_ev_profile_attr attr{};
    attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_ARRAY;
    attr.ev_op.entries = entries.data();
    attr.ev_op.entry_count = static_cast<int>(entries.size());
    EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), id, &attr, MRC_CTL_EV_PROFILE_EV_OP)), 0);
    entries.resize(static_cast<std::size_t>(attr.ev_op.entry_count));
    return entries;
  }
  mrc_ctl_profile_state ev_profile_state(std::uint64_t id) {
    mrc_ctl_ev_profile_attr attr{};
    EXPECT_EQ(why(mrc_ctl_query_ev_profile(ctx(), id, &attr, MRC_CTL_EV_PROFILE_CUR_STATE)), 0);
    return attr.cur_profile_state;
  }
  // An explicit profile over a structured format, filled with these EVs on ports 1, 2, 3, 4, 1, ...
  void explicit_profile(std::uint64_t id, std::initializer_list<std::uint32_t> values) {
    if (format_state(1) == MRC_CTL_PROFILE_INIT) {
      ASSERT_NO_FATAL_FAILURE(online_format(1, MRC_CTL_EV_FMT_MODE_STEV, {16, 16}));
    }
    ASSERT_EQ(create_ev(id, MRC_CTL_EV_MODE_EXP, 1, static_cast<std::uint32_t>(values.size())), 0);
    Entries entries;
    for (const std::uint32_t value : values) {
      const auto port = static_cast<std::uint8_t>(entries.size() % 4 + 1);
      entries.push_back(replace(MRC_CTL_EV_UNPOPULATED, stev(value, port)));
    }
    ASSERT_EQ(replace_evs(id, entries), 0);
  }

  mrc::test::TemporaryDirectory directory_;
  VerbsContext verbs_;
  mrc_context context_;
};

}  // namespace mrc::api::test
