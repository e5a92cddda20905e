"""Frames as MRC endpoints send them, and captures of them, by hand: see docs/wire.md."""

import socket
import struct
import zlib

ETHERNET = bytes.fromhex("020000000002020000000001")
SOURCE4, DESTINATION4 = "10.0.0.1", "10.0.0.2"
SOURCE6, DESTINATION6 = "fd00::1", "fd00::2"
CARRIER = "fc00:3:1000:8001:1002:105::"
PORT = 4791

WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMMEDIATE = 0xC6, 0xCA, 0xCB
ACK, ENDPOINT_REQUEST, SACK, PROBE = 0xD1, 0xD8, 0xDC, 0xDE


def bth(opcode, *, qp=0x000103, psn=100, pad=0, rtx=False, ts=False, version=0):
    more = (0x20 if rtx else 0) | (0x10 if ts else 0)
    return struct.pack(
        ">BBHII", opcode, pad << 4 | version, 0xFFFF, qp, more << 24 | psn
    )


def write_only(payload=b"payload!", *, immediate=None, msn=5, **fields):
    """The transport part of a write of one packet, with padding."""
    pad = -len(payload) % 4
    opcode = WRITE_ONLY if immediate is None else WRITE_ONLY_IMMEDIATE
    headers = bth(opcode, pad=pad, ts=True, **fields)
    headers += struct.pack(">HHHH", 2, msn, 0x1234, 0x0001)
    headers += struct.pack(">QII", 0x7F00DEADBEEF, 0xCAFE, len(payload))
    if immediate is not None:
        headers += struct.pack(">I", immediate)
    return headers + payload + bytes(pad)


def ack(syndrome, **fields):
    return bth(ACK, **fields) + struct.pack(">I", syndrome << 24 | 7)


def sack(cumulative, offset, bitmap, *, trigger=0, mark=0, entropy=0x00010007):
    seth = struct.pack(">HHIHHI", mark << 5, trigger & 0xFFFF, entropy, 0x103, 0x104, cumulative)
    seth += struct.pack(">BBHQ", 0, 8, offset & 0xFFFF, bitmap)
    return bth(SACK, psn=cumulative) + seth + struct.pack(">HHI", 0x1234, 3, 40)


def probe(probe_id):
    return bth(PROBE) + struct.pack(">IHHHHHH", 0, probe_id, 0, 0x103, 0x104, 77, 0x8001)


def endpoint_request(request_id, operation, ports, qp=2):
    header = struct.pack(">HBBIIHH", operation, 0, 1, ports, 0, 99, 1)
    return bth(ENDPOINT_REQUEST, qp=qp, psn=request_id) + header


def udp_header(entropy, port, length):
    return struct.pack(">HHHH", entropy & 0xFFFF, port, 8 + length, 0)


def ipv4(body, *, tos=0x10, protocol=17):
    header = struct.pack(
        ">BBHHHBBH4s4s", 0x45, tos, 20 + len(body), 0, 0x4000, 64, protocol, 0,
        socket.inet_aton(SOURCE4), socket.inet_aton(DESTINATION4),
    )
    words = sum(struct.unpack(">10H", header))
    words = (words & 0xFFFF) + (words >> 16)
    return header[:10] + struct.pack(">H", ~words & 0xFFFF) + header[12:]


def ipv6(length, *, tos=0x10, label=1, next_header=17, destination=DESTINATION6):
    return struct.pack(">IHBB", 6 << 28 | tos << 20 | label, length, next_header, 64) + b"".join(
        socket.inet_pton(socket.AF_INET6, address) for address in (SOURCE6, destination)
    )


def routing_header(segment):
    return struct.pack(">BBBBBBH", 41, 2, 4, 1, 0, 0, 0) + socket.inet_pton(
        socket.AF_INET6, segment
    )


def icrc(ip, udp, transport):
    """Bytes of the ICRC; fields that change on the way count as ones."""
    masked = bytearray(ip)
    if len(ip) == 20:
        for index in (1, 8, 10, 11):
            masked[index] = 0xFF
    else:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    covered = b"\xff" * 8 + bytes(masked) + udp[:6] + b"\xff\xff"
    covered += transport[:4] + b"\xff" + transport[5:]
    return struct.pack("<I", zlib.crc32(covered))


def frame(transport, *, version=6, entropy=0x0001C007, port=PORT, tos=0x10, outer_tos=None,
          carrier=None, segment=None, with_icrc=True, covered=None):
    """A frame from Ethernet to ICRC; with a carrier in SRv6, with a segment under a routing header.

    Without ICRC it is what a switch leaves of a trimmed packet. With `covered` the check covers so
    many bytes of the transport part, the headers, and no more.
    """
    tail = 4 if with_icrc else 0
    udp = udp_header(entropy, port, len(transport) + tail)
    length = len(udp) + len(transport) + tail
    if version == 4:
        ip = ipv4(bytes(length), tos=tos)
    else:
        ip = ipv6(length, tos=tos, label=entropy >> 16)
    checked = transport if covered is None else transport[:covered] + b"HDRS"
    packet = ip + udp + transport + (icrc(ip, udp, checked) if with_icrc else b"")
    if carrier:
        routing = routing_header(segment) if segment else b""
        outer = ipv6(
            len(routing) + len(packet), tos=tos if outer_tos is None else outer_tos,
            label=entropy >> 16, next_header=43 if segment else 41, destination=carrier,
        )
        packet = outer + routing + packet
    return ETHERNET + (b"\x08\x00" if version == 4 else b"\x86\xdd") + packet


def train(transports, *, version=4, entropy=0xC007, port=PORT):
    """Several packets in one datagram; each ICRC is that of the packet on its own."""
    parts = [frame(transport, version=version, entropy=entropy, port=port)[14:]
             for transport in transports]
    start = (20 if version == 4 else 40) + 8
    body = b"".join(part[start:] for part in parts)
    udp = udp_header(entropy, port, len(body))
    length = len(udp) + len(body)
    ip = ipv4(bytes(length)) if version == 4 else ipv6(length, label=entropy >> 16)
    return ETHERNET + (b"\x08\x00" if version == 4 else b"\x86\xdd") + ip + udp + body


def damaged(whole, index=-1):
    copy = bytearray(whole)
    copy[index] ^= 0x01
    return bytes(copy)


def icmp_error(quoted):
    """An unreachable message about an IPv4 frame of ours."""
    body = struct.pack(">BBHI", 3, 3, 0, 0) + quoted[14:]
    return ETHERNET + b"\x08\x00" + ipv4(body, protocol=1) + body


def write_capture(path, frames):
    """Frames are bytes, or (bytes, length on the wire) where the capture kept only a part."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for number, entry in enumerate(frames):
            kept, length = entry if isinstance(entry, tuple) else (entry, len(entry))
            out.write(struct.pack("<IIII", 0, number, len(kept), length) + kept)


def read_capture(path):
    """The frames of a pcapng file that the simulator wrote, with their lengths on the wire."""
    data = path.read_bytes()
    frames, at = [], 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("<II", data, at)
        if kind == 6:
            kept, original = struct.unpack_from("<II", data, at + 20)
            frames.append((data[at + 28 : at + 28 + kept], original))
        at += length
    return frames
