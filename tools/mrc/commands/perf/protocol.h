// What client and server say to each other, as JSON. Reading checks everything and throws Failure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "commands/perf/endpoint.h"
#include "commands/perf/plan.h"

namespace mrc::tool::perf {

// First message of each side.
struct Hello {
  Plan plan;
  std::uint64_t seed = 0;  // of the client's data; the server's is one more
  Address address;
};
nlohmann::json to_json(const Hello& hello);
// `peer` is named in errors. The plan has been checked, the address belongs to it.
Hello parse_hello(const nlohmann::json& message, const std::string& peer);
// The server's answer has no plan of its own.
nlohmann::json answer_json(const Address& address);
Address parse_answer(const nlohmann::json& message, const Plan& plan, const std::string& peer);

nlohmann::json to_json(const Result& result);
Result parse_result(const nlohmann::json& message, const std::string& peer);

std::vector<std::uint64_t> parse_counts(const nlohmann::json& message, const Plan& plan,
                                        const std::string& peer);
std::uint64_t read_number(const nlohmann::json& message, const char* key, std::uint64_t most,
                          const std::string& peer);
double read_real(const nlohmann::json& message, const char* key, const std::string& peer);
// Throws the Failure that says so.
[[noreturn]] void refuse(const std::string& peer, const char* key);
std::string read_text(const nlohmann::json& message, const char* key, const std::string& peer);

}  // namespace mrc::tool::perf
