// Why a packet from the network was not used. Every reason has a counter; none is ever an
// assertion.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mrc {

enum class DropReason : std::uint8_t {
  kNone,  // The packet was used.

  // The bytes do not form a packet of ours.
  kTruncated,      // ends inside a header
  kBadEtherType,   // neither IPv4 nor IPv6
  kBadIpVersion,   // version nibble contradicts the EtherType
  kBadIpHeader,    // header length, fragment, or total length that cannot be
  kBadIpChecksum,  // IPv4 header checksum
  kBadNextHeader,  // not UDP, not IPv6-in-IPv6, not a one-segment SRH
  kBadUdpLength,   // UDP length disagrees with the IP payload
  kBadUdpPort,     // not the MRC port
  kBadTransportVersion,
  kUnknownOpcode,
  kBadHeaderField,    // a field holds a value its header does not allow
  kBadPayloadLength,  // payload does not match what the headers announce
  kBadIcrc,
  kPlainPacket,   // not sealed, at a device that takes only what is
  kSealedPacket,  // sealed, at a device that is not
  kBadSeal,       // sealed by no member of the cluster, for somebody else, changed, or seen before

  // A well-formed packet that the endpoint's state does not admit.
  kUnknownQp,
  kQpNotReady,         // queue pair in a state that takes no such packet
  kWrongSource,        // not from the queue pair's peer
  kWrongContext,       // names other queue pairs than those it is for and from
  kBadPort,            // arrived on a port this endpoint does not have
  kPortOff,            // arrived on a port that a controller has turned off
  kDuplicate,          // already received, not placed again
  kOutOfWindow,        // beyond the receive window, answered with a NACK
  kFarOutOfWindow,     // further than twice the window away, not answered
  kTrimmed,            // payload was cut off on the way, answered with a NACK
  kNoBuffer,           // the caller had no buffer or resource for it
  kAccessDenied,       // memory key, right, domain or bounds
  kWrongMessage,       // headers contradict the message they belong to
  kWrongNumber,        // a message or receive number that cannot be at its PSN, not answered
  kImmediateLimit,     // more immediates in flight than agreed
  kReceiveQueueEmpty,  // an immediate arrived and no receive was posted
  kStaleFeedback,      // SACK, NACK or ACK about packets no longer or never outstanding
  kUnknownProbe,       // answer to a probe that is not waiting for one
  kUnproven,           // it may be so, but whoever said it has shown nothing for it
  kQueueFull,          // our own control queue had no room to answer

  kCount,
};

inline constexpr std::size_t kDropReasonCount = static_cast<std::size_t>(DropReason::kCount);

// A short stable name for logs and counters, e.g. "bad_icrc".
const char* drop_reason_name(DropReason reason);

}  // namespace mrc
