#include "commands/map/results.h"

#include <nlohmann/json.hpp>

#include "fabric/input_error.h"

namespace mrc::tool::map {
namespace {

using Json = nlohmann::ordered_json;
using fabric::NodeKind;

constexpr const char* kSchema = "mrc.map.results/1";

NodeKind turn_of(const std::string& word) {
  for (const NodeKind kind : {NodeKind::kT0, NodeKind::kT1, NodeKind::kT2})
    if (word == fabric::node_kind_name(kind)) return kind;
  throw fabric::InputError("no probe turns at '" + word + "'");
}

fabric::LoopResult loop_from(const Json& json, unsigned host) {
  fabric::LoopResult result;
  result.loop = {.host = host,
                 .turn = turn_of(json.at("turn").get<std::string>()),
                 .path = {.plane = json.at("plane").get<std::uint8_t>(),
                          .up = json.at("t1").get<std::uint16_t>(),
                          .t2 = json.at("t2").get<std::uint16_t>()}};
  result.sent = json.at("sent").get<std::uint64_t>();
  result.answered = json.at("answered").get<std::uint64_t>();
  if (result.answered > result.sent) throw fabric::InputError("more answers than probes");
  return result;
}

}  // namespace

std::string to_line(const fabric::HostResults& results) {
  const fabric::TopologySpec& spec = results.fabric;
  Json loops = Json::array();
  for (const fabric::LoopResult& result : results.loops) {
    const fabric::Loop& loop = result.loop;
    loops.push_back({{"turn", fabric::node_kind_name(loop.turn)},
                     {"plane", loop.path.plane},
                     {"t1", loop.path.up},
                     {"t2", loop.path.t2},
                     {"sent", result.sent},
                     {"answered", result.answered}});
  }
  return Json{{"schema", kSchema},
              {"fabric",
               {{"planes", spec.planes},
                {"hosts", spec.hosts},
                {"t0", spec.t0},
                {"t1", spec.t1},
                {"pods", spec.pods},
                {"t2", spec.t2},
                {"cables", spec.cables}}},
              {"host", results.host},
              {"loops", loops}}
      .dump();
}

fabric::HostResults from_line(const std::string& line) {
  fabric::HostResults results;
  try {
    const Json json = Json::parse(line);
    if (json.at("schema") != kSchema) throw fabric::InputError("not results of `mrc map --raw`");
    const Json& shape = json.at("fabric");
    results.fabric.planes = shape.at("planes").get<unsigned>();
    results.fabric.hosts = shape.at("hosts").get<unsigned>();
    results.fabric.t0 = shape.at("t0").get<unsigned>();
    results.fabric.t1 = shape.at("t1").get<unsigned>();
    results.fabric.pods = shape.at("pods").get<unsigned>();
    results.fabric.t2 = shape.at("t2").get<unsigned>();
    results.fabric.cables = shape.value("cables", 1U);  // not said by version 0.2.0
    results.host = json.at("host").get<unsigned>();
    for (const Json& loop : json.at("loops"))
      results.loops.push_back(loop_from(loop, results.host));
  } catch (const Json::exception&) {
    throw fabric::InputError("not results of `mrc map --raw`");
  }
  const fabric::Topology topology(results.fabric);
  for (const fabric::LoopResult& result : results.loops)
    if (!fabric::exists(topology, result.loop))
      throw fabric::InputError("a loop that the fabric does not have");
  return results;
}

}  // namespace mrc::tool::map
