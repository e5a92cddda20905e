-- What MRC packets say, without showing it: names of values, headers, numbers, ICRC.
--
-- A part of mrc.lua, which loads it; loaded by itself it does nothing. No read goes beyond the
-- bytes that were captured.

-- Bit operations by whatever name this Lua has them; the last resort is the operators of Lua 5.3.
local bits = bit32 or bit
if not bits then
  bits = load([[return {
    band = function(a, b) return a & b end, bxor = function(a, b) return a ~ b end,
    bor = function(a, b) return a | b end, rshift = function(a, n) return a >> n end }]])()
end
local band, bor, bxor, rshift = bits.band, bits.bor, bits.bxor, bits.rshift

local wire = { band = band, rshift = rshift }

---------------------------------------------------------------------------------------------------
-- Names of values

wire.opcodes = {
  [0xC6] = "Write first",
  [0xC7] = "Write middle",
  [0xC8] = "Write last",
  [0xC9] = "Write last with immediate",
  [0xCA] = "Write only",
  [0xCB] = "Write only with immediate",
  [0xD1] = "Acknowledgement",
  [0xD8] = "Endpoint request",
  [0xD9] = "Endpoint response",
  [0xDC] = "SACK",
  [0xDD] = "NACK",
  [0xDE] = "Probe",
}
wire.first_opcode, wire.last_opcode = 0xC6, 0xDE

wire.syndromes = {
  [0x1F] = "acknowledged",
  [0x61] = "invalid request",
  [0x62] = "remote access error",
  [0x63] = "remote operation error",
  [0x65] = "too many immediates in flight",
  [0x66] = "no receive posted",
}
wire.nack_reasons = {
  [0x01] = "trimmed",
  [0x02] = "trimmed at the last hop",
  [0x06] = "no bitmap",
  [0x07] = "no packet buffer",
  [0x0A] = "no resource",
  [0x0B] = "PSN out of window",
  [0x19] = "unexpected event",
}
wire.marks = {
  [0] = "none",
  [1] = "skip the path once",
  [2] = "always skip the path",
  [3] = "reserved",
}
wire.endpoint_ops = { [0] = "port status update", [1] = "EV probe" }
wire.tick_sizes = { "1 us", "128 ns" }
wire.trim_names = { [1] = "trimmed", [2] = "trimmed at the last hop" }
wire.icrc_states = { [0] = "wrong", [1] = "good", [2] = "not checked",
                     [3] = "good for the headers, the payload is not covered" }
wire.icrc_wrong, wire.icrc_good, wire.icrc_unchecked, wire.icrc_headers = 0, 1, 2, 3

---------------------------------------------------------------------------------------------------
-- ICRC

local crc_table = {}
for byte = 0, 255 do
  local crc = byte
  for _ = 1, 8 do
    crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xEDB88320) or rshift(crc, 1)
  end
  crc_table[byte] = crc
end

local function crc32(bytes)
  local state, byte_at = 0xFFFFFFFF, string.byte
  for i = 1, #bytes do
    state = bxor(crc_table[band(bxor(state, byte_at(bytes, i)), 0xFF)], rshift(state, 8))
  end
  -- The `bit` library counts with signs.
  return bxor(state, 0xFFFFFFFF) % 0x100000000
end

-- Fields that change on the way count as ones.
local function masked_ip(around)
  local ip = around.ip
  if around.is_v4 then
    return ip:sub(1, 1) .. "\255" .. ip:sub(3, 8) .. "\255" .. ip:sub(10, 10) .. "\255\255" ..
           ip:sub(13)
  end
  return string.char(bor(ip:byte(1), 0x0F)) .. "\255\255\255" .. ip:sub(5, 7) .. "\255" ..
         ip:sub(9)
end

-- Of a transport part without ICRC, given as bytes.
local function expected_icrc(transport, around)
  return crc32(("\255"):rep(8) .. masked_ip(around) .. around.udp:sub(1, 6) .. "\255\255" ..
               transport:sub(1, 4) .. "\255" .. transport:sub(6))
end

-- What stands in its place where both ends agreed to leave out payloads of more than 256 bytes.
local function expected_header_check(transport, around)
  local opcode, flags = transport:byte(1), transport:byte(9)
  if not wire.is_write(opcode) then return nil end
  local headers = wire.write_header_bytes(opcode, band(flags, 0x10) ~= 0)
  if #transport <= headers + 256 then return nil end
  return expected_icrc(transport:sub(1, headers) .. "HDRS", around)
end

-- The status of bytes that end with an ICRC, and what it should be.
local function status_of(bytes, around)
  local b1, b2, b3, b4 = bytes:byte(-4, -1)
  local transport, sent = bytes:sub(1, -5), ((b4 * 256 + b3) * 256 + b2) * 256 + b1
  local expected = expected_icrc(transport, around)
  if sent == expected then return wire.icrc_good, expected end
  if sent == expected_header_check(transport, around) then return wire.icrc_headers, sent end
  return wire.icrc_wrong, expected
end

-- Whether the ICRC of a packet is right, and what it should be.
function wire.icrc_status(tvb, around)
  local reported = tvb:reported_len()
  if around.trim or not around.ip or not around.udp or reported < 16 or
     tvb:captured_len() < reported then
    return wire.icrc_unchecked
  end
  return status_of(tvb:raw(0, reported), around)
end

---------------------------------------------------------------------------------------------------
-- Trains: several packets in one datagram, as captures show them where the kernel or the network
-- card cuts later. All are of one length; only the last may be shorter.

local smallest_packet = 20
-- What looks like the beginning of a second packet may be payload.
local max_guesses = 8

local function put_u16(bytes, at, value)
  return bytes:sub(1, at - 1) .. string.char(rshift(value, 8), band(value, 0xFF)) ..
         bytes:sub(at + 2)
end

-- The surroundings of one packet of a train.
function wire.around_part(around, length)
  local part = {}
  for key, value in pairs(around) do
    part[key] = value
  end
  local udp_length = length + 8
  part.udp = put_u16(around.udp, 5, udp_length)
  part.ip = put_u16(around.ip, around.is_v4 and 3 or 5,
                    around.is_v4 and udp_length + 20 or udp_length)
  return part
end

-- The length of the packets of a train that was captured whole; nil if this is none.
function wire.train_step(tvb, around)
  local total = tvb:reported_len()
  if around.trim or not around.ip or not around.udp or total < 2 * smallest_packet or
     tvb:captured_len() < total then
    return nil
  end
  local bytes, guesses = tvb:raw(0, total), 0
  local pkey, at = bytes:sub(3, 4), smallest_packet + 3
  while guesses < max_guesses do
    at = bytes:find(pkey, at, true)
    if not at or at > total - smallest_packet + 3 then return nil end
    local step = at - 3
    if step % 4 == 0 and wire.opcodes[bytes:byte(step + 1)] and
       band(bytes:byte(step + 2), 0x0F) == 0 then
      guesses = guesses + 1
      local status = status_of(bytes:sub(1, step), wire.around_part(around, step))
      if status ~= wire.icrc_wrong then return step end
    end
    at = at + 1
  end
end

---------------------------------------------------------------------------------------------------
-- Headers

-- Sealed packets (src/seal/layout.h): the transport version of their BTH, and the tag behind them.
wire.sealed_version = 5
wire.seal_tag_bytes = 16
wire.seal_suites = { [1] = "AES-128-GCM", [2] = "ChaCha20-Poly1305" }

wire.header_bytes = {
  BTH = 12,
  SEAL = 28,
  METH = 4,
  TSETH = 4,
  RETH = 16,
  ImmDt = 4,
  AETH = 4,
  SETH = 28,
  CC_STATE = 8,
  NETH = 20,
  PETH = 16,
  ERTH = 16,
  EETH = 36,
}

-- Where headers have the timestamp word.
wire.timestamp_at = { TSETH = 0, PETH = 12, ERTH = 12 }

local control_headers = {
  [0xD1] = { "AETH" },
  [0xD8] = { "ERTH" },
  [0xD9] = { "EETH" },
  [0xDC] = { "SETH", "CC_STATE" },
  [0xDD] = { "NETH" },
  [0xDE] = { "PETH" },
}

function wire.is_write(opcode) return opcode >= 0xC6 and opcode <= 0xCB end
function wire.is_endpoint_op(opcode) return opcode == 0xD8 or opcode == 0xD9 end
function wire.is_probe(opcode) return opcode == 0xDE end
local function has_immediate(opcode) return opcode == 0xC9 or opcode == 0xCB end
function wire.is_single(opcode) return opcode == 0xCA or opcode == 0xCB end

local headers_of
function wire.write_header_bytes(opcode, has_timestamp)
  local bytes = wire.header_bytes.BTH
  for _, name in ipairs(headers_of(opcode, has_timestamp, false)) do
    bytes = bytes + wire.header_bytes[name]
  end
  return bytes
end

function headers_of(opcode, has_timestamp, trimmed)
  if not wire.is_write(opcode) then
    return control_headers[opcode] or {}
  end
  local names = { "METH" }
  if has_timestamp then names[#names + 1] = "TSETH" end
  if trimmed then return names end
  names[#names + 1] = "RETH"
  if has_immediate(opcode) then names[#names + 1] = "ImmDt" end
  return names
end

---------------------------------------------------------------------------------------------------
-- Reading a packet

-- Numbers of a packet; nil where the packet or the capture has ended.
local function reader(tvb, limit)
  local stop = math.min(limit, tvb:captured_len())
  return function(at, length)
    return at and at + length <= stop and tvb(at, length):uint() or nil
  end
end

local function signed16(value)
  return value >= 0x8000 and value - 0x10000 or value
end

function wire.psn_plus(psn, offset)
  return (psn + offset) % 0x1000000
end

-- "7-9, 12" for the set bits of a bitmap that begins at PSN `start`, and how many are set.
local function psn_ranges(start, high, low)
  local list, first, count = {}, nil, 0
  for i = 0, 64 do
    local set = i < 64 and band(rshift(i < 32 and low or high, i % 32), 1) == 1
    if set then
      first = first or i
      count = count + 1
    elseif first then
      local from, to = wire.psn_plus(start, first), wire.psn_plus(start, i - 1)
      list[#list + 1] = from == to and tostring(from) or from .. "-" .. to
      first = nil
    end
  end
  return table.concat(list, ", "), count
end

local function read_write(p, number)
  local reth = p.at.RETH
  p.msn = number(p.at.METH and p.at.METH + 2, 2)
  p.message_length = number(reth and reth + 12, 4)
  p.immediate = number(p.at.ImmDt, 4)
  if not p.trimmed and not p.missing then
    p.payload_length = p.limit - p.stop - p.pad
  end
end

local function read_sack(p, number)
  local at = p.at.SETH
  if not at then return end
  local flags = number(at, 2)
  p.mark, p.answers_probe = band(rshift(flags, 5), 3), band(flags, 2) ~= 0
  p.answered_ev, p.cack = number(at + 4, 4), number(at + 13, 3)
  p.cc_type = rshift(number(at + 16, 1), 4)
  local trigger = number(at + 2, 2)
  if p.answers_probe then
    p.probe_id = trigger
  else
    p.trigger = wire.psn_plus(p.cack, signed16(trigger))
  end
  local start = wire.psn_plus(p.cack, signed16(number(at + 18, 2)))
  p.ranges, p.range_count = psn_ranges(start, number(at + 20, 4), number(at + 24, 4))
end

local function read_control(p, number)
  local aeth, neth, peth = p.at.AETH, p.at.NETH, p.at.PETH
  if aeth then
    p.syndrome, p.aeth_msn = band(number(aeth, 1), 0x7F), number(aeth + 1, 3)
  elseif neth then
    p.reason, p.answered_ev = number(neth + 2, 1), number(neth + 4, 4)
    p.nack_psn, p.cc_type = number(neth + 13, 3), rshift(number(neth + 16, 1), 4)
  elseif peth then
    p.probe_id = number(peth + 4, 2)
  elseif p.at.ERTH then
    p.op, p.ports = band(number(p.at.ERTH, 2), 3), number(p.at.ERTH + 4, 4)
  elseif p.at.EETH then
    p.op = band(rshift(number(p.at.EETH, 2), 2), 3)
  end
end

-- Of a sealed packet what switches keep when they trim and the seal header; the rest is encrypted.
local function read_sealed(p, number, place)
  if wire.is_write(p.opcode) then
    for _, name in ipairs(headers_of(p.opcode, p.has_timestamp, true)) do
      place(name)
    end
  end
  place("SEAL")
  local at = p.at.SEAL
  if at then
    local first = number(at, 1)
    p.sealed = { format = rshift(first, 4), suite = band(first, 0x0F), key = number(at + 1, 1),
                 zero = number(at + 2, 2), high = number(at + 12, 4), low = number(at + 16, 4) }
  end
  return p
end

-- Everything the rest needs to know of a packet of which at least one byte was captured. `at` has
-- the headers that are complete; `missing` says what ended within the headers, "packet" or
-- "capture".
function wire.read_packet(tvb, trim)
  local reported = tvb:reported_len()
  local p = { trimmed = trim ~= nil, at = {}, headers = {}, missing = nil,
              limit = trim and reported or math.max(reported - 4, 0) }
  local number = reader(tvb, p.limit)
  local function place(name)
    local at, bytes = p.stop or 0, wire.header_bytes[name]
    p.headers[#p.headers + 1] = { name = name, at = at }
    p.stop = at + bytes
    if at + bytes > p.limit then
      p.missing = "packet"
    elseif at + bytes > tvb:captured_len() then
      p.missing = p.missing or (trim and "packet" or "capture")
    else
      p.at[name] = at
    end
  end
  p.opcode = tvb(0, 1):uint()
  place("BTH")
  if p.missing then return p end
  local flags, more = number(1, 1), number(8, 1)
  p.version, p.pad = band(flags, 0x0F), rshift(band(flags, 0x30), 4)
  p.qp, p.psn = number(5, 3), number(9, 3)
  p.rtx = band(more, 0x20) ~= 0
  p.has_timestamp = band(more, 0x10) ~= 0 and wire.is_write(p.opcode)
  if p.version == wire.sealed_version and wire.opcodes[p.opcode] then
    p.limit = trim and reported or math.max(reported - wire.seal_tag_bytes, 0)
    return read_sealed(p, reader(tvb, p.limit), place)
  end
  for _, name in ipairs(headers_of(p.opcode, p.has_timestamp, p.trimmed)) do
    place(name)
  end
  for name, offset in pairs(wire.timestamp_at) do
    if p.at[name] then p.timestamp_type = band(number(p.at[name] + offset + 2, 2), 0x0F) end
  end
  if wire.is_write(p.opcode) then
    read_write(p, number)
  elseif p.opcode == 0xDC then
    read_sack(p, number)
  else
    read_control(p, number)
  end
  return p
end

local function has_bad_field(p)
  if p.trimmed and not wire.is_write(p.opcode) then return true end
  if wire.is_endpoint_op(p.opcode) and (p.qp ~= 2 or (p.op or 0) > 1) then return true end
  if p.timestamp_type and p.timestamp_type ~= 1 then return true end
  if p.mark == 3 or (p.cc_type and p.cc_type ~= (p.opcode == 0xDD and 2 or 0)) then return true end
  if p.reason and not wire.nack_reasons[p.reason] then return true end
  return p.syndrome ~= nil and p.syndrome ~= 0x1F and band(p.syndrome, 0x60) ~= 0x60
end

local function has_bad_length(p)
  if p.trimmed then return false end
  if not wire.is_write(p.opcode) then return p.limit ~= p.stop or p.pad ~= 0 end
  if not p.payload_length then return false end
  if (p.limit - p.stop) % 4 ~= 0 or p.payload_length < 0 then return true end
  if wire.is_single(p.opcode) then return p.payload_length ~= p.message_length end
  return p.payload_length == 0 or p.payload_length >= p.message_length
end

-- The drop reason of src/wire/drop_reason.h that an endpoint has for the transport part, or nil.
function wire.refusal(p)
  if not p.at.BTH then return p.missing == "packet" and "truncated" or nil end
  if p.sealed or p.version == wire.sealed_version and p.missing then
    if p.missing == "packet" then return "bad_seal" end
    local good = not p.sealed or p.sealed.format == 1 and wire.seal_suites[p.sealed.suite] and
                 p.sealed.zero == 0 and (wire.is_write(p.opcode) or not p.trimmed)
    return not good and "bad_seal" or nil
  end
  if p.version ~= 0 then return "bad_transport_version" end
  if not wire.opcodes[p.opcode] then return "unknown_opcode" end
  if p.missing == "packet" then return "truncated" end
  if has_bad_field(p) then return "bad_header_field" end
  return has_bad_length(p) and "bad_payload_length" or nil
end

return wire
