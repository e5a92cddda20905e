// Why a call was refused: errno has one word for many reasons, so a line at level info names the
// field, its value and the rule. docs/api.md, "When a call is refused".
#pragma once

#include <cstdint>
#include <string_view>

namespace mrc::api {

// Both return `error`. `rule` reads on from the value: "max_send_wr 70000: at most 65536".
int refused(int error, const char* field, std::int64_t value, const char* rule);
int refused(int error, const char* what);

// For guard.h, around a call of the program: whether anybody has given a reason within it. Without
// one a line names the call at least.
void begin_call();
void end_call(int error, std::string_view function);

}  // namespace mrc::api
