#include "controller/setup_file.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "controller/words.h"
#include "fabric/input_error.h"
#include "fabric/toml_file.h"

namespace mrc::controller {
namespace {

using fabric::InputError;

[[noreturn]] void fail(const std::string& file, const toml::source_region& source,
                       const std::string& what) {
  throw InputError(fmt::format("{}:{}:{}: {}", file, source.begin.line, source.begin.column, what));
}

// One [[table]] of the file. Each key must be taken; one that nobody wants is an error.
class Section {
 public:
  Section(const toml::node& node, std::string file)
      : file_(std::move(file)), source_(node.source()) {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(file_, source_, "must be a table");
    table_ = table;
  }

  // Calls `take` with the node of `key`, if it is there. Bad words get file and position.
  template <typename Take>
  bool take(std::string_view key, const Take& take) {
    const toml::node* node = table_->get(key);
    if (node == nullptr) return false;
    taken_.emplace(key);
    try {
      take(*node);
    } catch (const InputError& error) {
      fail(file_, node->source(), error.what());
    }
    return true;
  }
  std::uint64_t number(const toml::node& node, std::uint64_t max) const {
    const auto value = node.value_exact<std::int64_t>();
    if (!value || *value < 0 || static_cast<std::uint64_t>(*value) > max)
      throw InputError(fmt::format("must be a whole number from 0 to {}", max));
    return static_cast<std::uint64_t>(*value);
  }
  std::string text(const toml::node& node) const {
    const auto value = node.value_exact<std::string>();
    if (!value) throw InputError("must be a text in quotes");
    return *value;
  }
  void each(const toml::node& node, const std::function<void(const toml::node&)>& take) const {
    const toml::array* list = node.as_array();
    if (list == nullptr) throw InputError("must be a list");
    for (const toml::node& item : *list)
      take(item);
  }
  std::uint64_t id() {
    std::uint64_t value = 0;
    const bool given = take("id", [&](const toml::node& node) {
      value = number(node, std::numeric_limits<std::int64_t>::max());
    });
    if (!given) fail(file_, source_, "has no id");
    return value;
  }
  std::string place() const {
    return fmt::format("{}:{}:{}", file_, source_.begin.line, source_.begin.column);
  }
  void done() const {
    for (const auto& [key, node] : *table_) {
      if (taken_.contains(key.str())) continue;
      fail(
          file_, key.source(),
          fmt::format("'{}' means nothing here; `mrc ctl apply --help` lists the keys", key.str()));
    }
  }

 private:
  std::string file_;
  toml::source_region source_;
  const toml::table* table_ = nullptr;
  std::set<std::string, std::less<>> taken_;
};

FormatSpec read_format(Section section) {
  FormatSpec spec{.id = section.id(), .place = section.place()};
  section.take("mode",
               [&](const toml::node& n) { spec.mode = parse_format_mode(section.text(n)); });
  section.take("widths", [&](const toml::node& n) {
    section.each(n, [&](const toml::node& width) {
      spec.widths.push_back(static_cast<std::uint8_t>(section.number(width, 255)));
    });
  });
  section.done();
  return spec;
}

EvSpec read_ev_profile(Section section) {
  constexpr std::uint64_t kMax = 0xFFFF'FFFF;
  EvSpec spec{.id = section.id(), .place = section.place()};
  section.take("mode", [&](const toml::node& n) { spec.mode = parse_ev_mode(section.text(n)); });
  spec.has_format = section.take("format", [&](const toml::node& n) {
    spec.format = section.number(n, std::numeric_limits<std::int64_t>::max());
  });
  section.take("count", [&](const toml::node& n) {
    spec.count = static_cast<std::uint32_t>(section.number(n, kMax));
  });
  section.take("min_active", [&](const toml::node& n) {
    spec.min_active = static_cast<std::uint32_t>(section.number(n, kMax));
  });
  section.take("events",
               [&](const toml::node& n) { spec.event_mask = parse_event_mask(section.text(n)); });
  section.take("fields", [&](const toml::node& n) {
    section.each(n, [&](const toml::node& field) {
      spec.fields.push_back(parse_field(section.text(field)));
    });
  });
  section.take("evs", [&](const toml::node& n) {
    section.each(n, [&](const toml::node& ev) { spec.evs.push_back(parse_ev(section.text(ev))); });
  });
  section.done();
  return spec;
}

CcSpec read_cc_profile(Section section) {
  CcSpec spec{.id = section.id(), .place = section.place(), .algorithm = parse_algorithm("nscc")};
  section.take("algorithm",
               [&](const toml::node& n) { spec.algorithm = parse_algorithm(section.text(n)); });
  section.take("trimming",
               [&](const toml::node& n) { spec.trimming = parse_trimming(section.text(n)); });
  for (const auto& [name, value] : cc_values(spec.config)) {
    section.take(name, [&, key = name](const toml::node& n) {
      const auto number = n.value<double>();
      if (!number) throw InputError("must be a number");
      set_cc_value(key, *number, spec.config);
    });
  }
  section.done();
  return spec;
}

DenySpec read_deny(Section section) {
  DenySpec spec{.place = section.place()};
  const bool given = section.take("profile", [&](const toml::node& n) {
    spec.profile = section.number(n, std::numeric_limits<std::int64_t>::max());
  });
  section.take("evs", [&](const toml::node& n) {
    section.each(n, [&](const toml::node& ev) { spec.evs.push_back(section.text(ev)); });
  });
  section.done();
  if (!given) throw InputError(spec.place + ": has no profile");
  return spec;
}

template <typename Spec>
const Spec* find_id(const std::vector<Spec>& specs, std::uint64_t id) {
  const auto found =
      std::find_if(specs.begin(), specs.end(), [&](const Spec& spec) { return spec.id == id; });
  return found == specs.end() ? nullptr : &*found;
}

template <typename Spec>
void check_unique(const std::vector<Spec>& specs) {
  for (const Spec& spec : specs) {
    const Spec* const first = find_id(specs, spec.id);
    if (first != &spec)
      throw InputError(
          fmt::format("{}: id {} is taken, see {}", spec.place, spec.id, first->place));
  }
}

void check(const Setup& setup) {
  check_unique(setup.formats);
  check_unique(setup.ev_profiles);
  check_unique(setup.cc_profiles);
  for (const DenySpec& deny : setup.denies) {
    if (find_id(setup.ev_profiles, deny.profile) == nullptr) {
      throw InputError(
          fmt::format("{}: there is no EV profile {} in this file", deny.place, deny.profile));
    }
    if (deny.evs.empty()) throw InputError(deny.place + ": names no evs");
  }
}

}  // namespace

Setup read_setup(const std::string& path) { return parse_setup(fabric::load_text(path), path); }

Setup parse_setup(const std::string& text, const std::string& path) {
  const toml::table file = fabric::parse_toml(text, path);
  Setup setup;
  Section top(file, path);
  const auto tables = [&](const char* key, const std::function<void(Section)>& read) {
    top.take(key, [&](const toml::node& node) {
      top.each(node, [&](const toml::node& table) { read(Section(table, path)); });
    });
  };
  top.take("disabled_ports", [&](const toml::node& node) {
    top.each(node, [&](const toml::node& port) {
      setup.disabled_ports.push_back(static_cast<unsigned>(top.number(port, 16)));
    });
  });
  // Each of these throws with a position of its own, which take() must not put another before.
  std::string problem;
  const auto guarded = [&](const auto& read) {
    return [&, read](Section section) {
      if (!problem.empty()) return;
      try {
        read(std::move(section));
      } catch (const InputError& error) {
        problem = error.what();
      }
    };
  };
  tables("format", guarded([&](Section s) { setup.formats.push_back(read_format(std::move(s))); }));
  tables("ev_profile",
         guarded([&](Section s) { setup.ev_profiles.push_back(read_ev_profile(std::move(s))); }));
  tables("cc_profile",
         guarded([&](Section s) { setup.cc_profiles.push_back(read_cc_profile(std::move(s))); }));
  tables("deny", guarded([&](Section s) { setup.denies.push_back(read_deny(std::move(s))); }));
  if (!problem.empty()) throw InputError(problem);
  top.done();
  check(setup);
  return setup;
}

}  // namespace mrc::controller
