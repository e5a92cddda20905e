// What the public facts about MRC leave open, as one value.
//
// Two ends understand each other when they read the same bytes the same way. Most of the protocol
// is agreed upon; the fields below are those where sources disagree or say nothing, so that a card
// may have chosen otherwise than we did. docs/interop.md says what is known about each.
//
// The dialect is spoken at the edge, between structs and bytes (codec.h, frame.h): a Packet means
// the same in every dialect, and the protocol engine knows of none. There messages count from 0,
// port n is bit n-1, and an entropy has the UDP source port in its low half.
//
// The values of the enumerations are the numbers that the codec works with, so that no packet
// waits for a decision about its dialect.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace mrc::wire {

// How a packet finds its process among several of one host and device.
enum class Processes : std::uint8_t {
  kByUdpPort,    // each receives at a UDP port of its own; see docs/adr/0011-process-numbers.md
  kByQueuePair,  // all receive at one UDP port, as cards do; the queue pair number tells
};

// The AETH's message number: that of the last complete message, or the one behind it. The value is
// what is added to the number of the last complete one.
enum class AckMsn : std::uint8_t { kLast = 0, kNext = 1 };

// Which half of an EV is the UDP source port; the other one is the flow label. The value is by how
// many bits our entropy is turned to be the EV that a SACK or NACK echoes.
enum class EvOrder : std::uint8_t { kLowInPort = 0, kHighInPort = 16 };

// Whose flow label counts in an SRv6 tunnel. Both carry it when we send.
enum class EvLabel : std::uint8_t { kInner, kOuter };

// Byte 1 of the BTH. The value is the bit of the solicited event; migration has the other one.
enum class BthOrder : std::uint8_t { kSolicitedFirst = 0x80, kMigrationFirst = 0x40 };
inline constexpr unsigned kBthOrderBits = 0xC0;

// The lowest of the two bits of EETH's op.
enum class EethOp : std::uint8_t { kBits32 = 2, kBits54 = 4 };

// What of the IP headers the ICRC of a tunnelled packet covers.
enum class Srv6Icrc : std::uint8_t {
  kInner,      // the inner header, as if there were no tunnel
  kOuter,      // the outer header in its place, whose destination counts as ones: it is used up
  kUnchecked,  // sent as kInner, not looked at on receive
};

// A transport NAK or a NACK whose code we do not know.
enum class UnknownNak : std::uint8_t {
  kDrop,  // counts for nothing: retries go on until they end
  kAct,   // the NAK fails the queue pair, the NACK has its packet sent again
};

struct Dialect {
  Processes processes = Processes::kByUdpPort;
  std::uint16_t first_msn = 0;    // METH's message number of the first message
  std::uint16_t first_rqmsn = 0;  // and of the first one with an immediate
  AckMsn ack_msn = AckMsn::kNext;
  EvOrder ev_order = EvOrder::kLowInPort;
  EvLabel ev_label = EvLabel::kInner;
  BthOrder bth_order = BthOrder::kSolicitedFirst;
  EethOp eeth_op = EethOp::kBits32;
  Srv6Icrc srv6_icrc = Srv6Icrc::kInner;
  std::uint8_t port_bit = 0;      // of port 1 in a port status mask
  bool service_time = true;       // a reflected time stamp is advanced by how long we had it
  std::uint8_t window_units = 8;  // of 128 PSNs: the window where nobody says
  UnknownNak unknown_nak = UnknownNak::kDrop;
  friend bool operator==(const Dialect&, const Dialect&) = default;
};

// What OpenMRC has always spoken, and the default everywhere.
inline constexpr Dialect kOpenMrc{};
// For first contact with a card: one UDP port, stamps reflected as they came, a window that the
// smallest public default allows, and no NAK unheard.
inline constexpr Dialect kCard{.processes = Processes::kByQueuePair,
                               .service_time = false,
                               .window_units = 4,
                               .unknown_nak = UnknownNak::kAct};

// --- By name ---

struct DialectChoice {
  std::string_view name;
  std::uint16_t value;
};

// One field of a Dialect as people write it: one of `choices`, or where there are none a number
// from `min` to `max`.
struct DialectField {
  std::string_view name;
  std::string_view meaning;
  std::span<const DialectChoice> choices;
  std::uint16_t min;
  std::uint16_t max;
  std::uint16_t (*get)(const Dialect&);
  void (*set)(Dialect&, std::uint16_t);
};

[[nodiscard]] std::span<const DialectField> dialect_fields();
[[nodiscard]] const DialectField* find_dialect_field(std::string_view name);

// "openmrc" or "card"; null for any other name.
[[nodiscard]] const Dialect* find_dialect(std::string_view name);
// The name of a dialect that has one, otherwise empty.
[[nodiscard]] std::string_view dialect_name(const Dialect& dialect);

// Sets a field from its text. False, and nothing changed, when that is none of its values.
[[nodiscard]] bool set_dialect_field(Dialect& dialect, const DialectField& field,
                                     std::string_view text);

// Text of bounded size that belongs to nobody else.
template <std::size_t Size>
struct ShortText {
  std::array<char, Size> characters{};
  std::size_t length = 0;
  std::string_view view() const { return {characters.data(), length}; }
  void append(std::string_view text) {
    for (const char c : text) {
      if (length < Size) characters[length++] = c;
    }
  }
};

// The value of a field, as set_dialect_field() takes it.
[[nodiscard]] ShortText<24> dialect_value(const Dialect& dialect, const DialectField& field);
// What a field may be, for error lines: "a" or "b", or a number from 0 to 1.
[[nodiscard]] ShortText<96> dialect_rule(const DialectField& field);

// "card", or "card,first_msn=1,ev_order=high_in_port". Parsing starts from a name; printing from
// whichever named dialect is nearer.
struct DialectParse {
  Dialect dialect;
  ShortText<160> error;  // names field, value and rule; empty when all is well
  bool ok() const { return error.length == 0; }
};
[[nodiscard]] DialectParse parse_dialect(std::string_view text);
using DialectText = ShortText<512>;
[[nodiscard]] DialectText dialect_text(const Dialect& dialect);

// The fields that two ends must agree in, as one number for set-up messages; never 0, which stands
// for ends that say nothing. None comes back from a number that is no such code.
[[nodiscard]] std::uint64_t dialect_code(const Dialect& dialect);
[[nodiscard]] std::optional<Dialect> dialect_of_code(std::uint64_t code);

// The first field in which two ends would not understand each other; null when they would. What
// an end decides for itself (window, stamps, unknown NAKs) does not count.
[[nodiscard]] const DialectField* first_conflict(const Dialect& a, const Dialect& b);

}  // namespace mrc::wire
