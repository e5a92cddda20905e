// What became of the packets of strangers, kind by kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mrc::strangers {

struct Row {
  std::string kind;
  std::uint64_t packets = 0;
};

struct Tally {
  std::vector<Row> rows;
  std::uint64_t genuine = 0;   // packets that were carried beside them
  std::uint64_t messages = 0;  // that were compared byte by byte meanwhile
};

// Ends the program: a promise does not hold. `seed` brings it again.
[[noreturn]] void broken(const std::string& what);

}  // namespace mrc::strangers
