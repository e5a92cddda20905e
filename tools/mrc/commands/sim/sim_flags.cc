#include "commands/sim/sim_flags.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <string_view>

#include "fabric/input_error.h"
#include "sim/workload.h"

namespace mrc::tool::simulator {
namespace {

constexpr const char* kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=:,./@%+";
constexpr std::array<std::string_view, 12> kWriteOnly = {
    "json",      "csv",       "series",       "bin_us", "explain",     "report",
    "pcap_link", "pcap_snap", "pcap_packets", "record", "record_hops", "pcap"};

bool writes_only(std::string_view name) {
  return std::find(kWriteOnly.begin(), kWriteOnly.end(), name) != kWriteOnly.end();
}

const char* type_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::kFlag:
      return "";
    case ValueKind::kCount:
      return "N";
    case ValueKind::kNumber:
      return "NUMBER";
    case ValueKind::kShare:
      return "SHARE";
    case ValueKind::kTime:
      return "TIME";
    case ValueKind::kBytes:
      return "BYTES";
    case ValueKind::kText:
      return "TEXT";
  }
  return "";
}

}  // namespace

CLI::Option* SimFlags::declare_setting(CLI::App& app, const Setting& setting) {
  const std::string flag = flag_of(setting.name);
  if (setting.kind == ValueKind::kFlag) {
    return app.add_flag_callback(
        flag,
        [this, &setting] {
          given_.push_back({&setting, "true"});
        },
        setting.help);
  }
  CLI::Option* option = app.add_option_function<std::vector<std::string>>(
      flag,
      [this, &setting](const std::vector<std::string>& values) {
        for (const std::string& value : values)
          given_.push_back({&setting, value});
      },
      setting.help);
  option->type_name(type_name(setting.kind))->expected(1)->allow_extra_args(false);
  option->multi_option_policy(setting.repeats ? CLI::MultiOptionPolicy::TakeAll
                                              : CLI::MultiOptionPolicy::Throw);
  return option;
}

template <typename Keys>
void SimFlags::declare_topology(CLI::App& app, const Keys& keys, const char* type) {
  for (const auto& key : keys) {
    app.add_option_function<std::string>(
           flag_of(key.name),
           [this, name = std::string(key.name)](const std::string& text) {
             topology_given_.push_back({name, text});
           },
           key.help)
        ->type_name(type)
        ->group("Topology");
  }
}

void SimFlags::declare(CLI::App& app) {
  app.add_option("--config", config_files_, "Settings from a TOML file with these flags as keys")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  declare_topology(app, fabric::topology_count_keys(), "N");
  declare_topology(app, fabric::topology_number_keys(), "NUMBER");
  for (const SettingGroup& group : setting_groups())
    for (const Setting& setting : group.settings)
      declare_setting(app, setting)->group(group.name);
  std::string names;
  for (const std::string& name : sim::workload_names())
    names += " " + name;
  app.footer("Workloads:" + names + "\nSee docs/simulator.md for what is modelled and reported.");
}

// The flags again, as a shell reads them, without those that only write files or choose a form.
std::string SimFlags::command() const {
  std::string line = "mrc sim";
  const auto add = [&](std::string_view name, const std::string& text, bool has_value) {
    line += " " + flag_of(name);
    if (!has_value) return;
    line += text.find_first_not_of(kPlain) == std::string::npos ? " " + text : " '" + text + "'";
  };
  for (const std::string& path : config_files_)
    add("config", path, true);
  for (const GivenTopology& given : topology_given_)
    add(given.name, given.text, true);
  for (const Given& given : given_)
    if (!writes_only(given.setting->name))
      add(given.setting->name, given.text, given.setting->kind != ValueKind::kFlag);
  return line;
}

RunOptions SimFlags::read() const {
  RunOptions options;
  for (const std::string& path : config_files_)
    apply_file(path, options);
  const auto with_flag = [](std::string_view name, const auto& apply) {
    try {
      apply();
    } catch (const fabric::InputError& error) {
      throw fabric::InputError(flag_of(name) + ": " + error.what());
    }
  };
  for (const GivenTopology& given : topology_given_)
    with_flag(given.name, [&] { apply_topology_text(given.name, given.text, options); });
  for (const Given& given : given_)
    with_flag(given.setting->name, [&] { apply_text(*given.setting, given.text, options); });
  resolve(options);
  options.command = command();
  return options;
}

}  // namespace mrc::tool::simulator
