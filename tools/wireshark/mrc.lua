-- Wireshark dissector for MRC packets. Layouts: docs/wire.md; use: docs/wireshark.md.
--
-- Whatever a capture holds, no read goes beyond the captured bytes. Numbers come from mrc_wire.lua,
-- statistics are in mrc_stats.lua; both lie beside this file.

set_plugin_info({
  version = "@PROJECT_VERSION@",  -- filled in when it is installed
  description = "Multipath Reliable Connection (MRC) packets",
})

local mrc = Proto("mrc", "Multipath Reliable Connection")

-- A module that lies beside this file, wherever that is.
local function load_part(name)
  return assert(loadfile(__DIR__ .. package.config:sub(1, 1) .. name))()
end
local wire = load_part("mrc_wire.lua")
local stats = load_part("mrc_stats.lua")
local band, rshift = wire.band, wire.rshift

---------------------------------------------------------------------------------------------------
-- Fields

local u8, u16, u24, u32 = ProtoField.uint8, ProtoField.uint16, ProtoField.uint24, ProtoField.uint32
local flag = ProtoField.bool
local header = ProtoField.none
local yes_no = { "yes", "no" }

-- The word that TSETH, PETH and ERTH share; its fields belong to TSETH.
local timestamp = {
  { 0, 2, u16("mrc.tseth.clock", "Sender clock") },
  { 2, 2, flag("mrc.tseth.tsr", "Tick", 16, wire.tick_sizes, 0x8000) },
  { 2, 2, u16("mrc.tseth.ftype", "Type of the timestamp", base.DEC, nil, 0x000F) },
}

-- For each header its title and its fields: offset, length, field.
local layouts = {
  BTH = { title = header("mrc.bth", "BTH"),
    { 0, 1, u8("mrc.bth.opcode", "Opcode", base.HEX, wire.opcodes) },
    { 1, 1, flag("mrc.bth.se", "Solicited event", 8, yes_no, 0x80) },
    { 1, 1, flag("mrc.bth.mig", "Migration", 8, yes_no, 0x40) },
    { 1, 1, u8("mrc.bth.pad", "Pad count", base.DEC, nil, 0x30) },
    { 1, 1, u8("mrc.bth.tver", "Transport version", base.DEC, nil, 0x0F) },
    { 2, 2, u16("mrc.bth.pkey", "Partition key", base.HEX) },
    { 5, 3, u24("mrc.bth.destqp", "Destination queue pair", base.HEX) },
    { 8, 1, flag("mrc.bth.ackreq", "Acknowledge request", 8, yes_no, 0x80) },
    { 8, 1, flag("mrc.bth.rtx", "Retransmission", 8, yes_no, 0x20) },
    { 8, 1, flag("mrc.bth.ts", "TSETH follows", 8, yes_no, 0x10) },
    { 8, 1, flag("mrc.bth.hc", "Sender takes header checks", 8, yes_no, 0x01) },
  },
  SEAL = { title = header("mrc.seal", "Seal"),
    { 0, 1, u8("mrc.seal.format", "Format", base.DEC, nil, 0xF0) },
    { 0, 1, u8("mrc.seal.suite", "Suite", base.DEC, wire.seal_suites, 0x0F) },
    { 1, 1, u8("mrc.seal.key", "Cluster key") },
    { 4, 8, ProtoField.uint64("mrc.seal.instance", "Instance of the sender", base.HEX) },
    { 12, 8, ProtoField.uint64("mrc.seal.number", "Packet number") },
    { 20, 8, ProtoField.uint64("mrc.seal.header_tag", "Header tag", base.HEX) },
  },
  METH = { title = header("mrc.meth", "METH"),
    { 0, 2, u16("mrc.meth.rmsn", "Receive message number") },
    { 2, 2, u16("mrc.meth.msn", "Message number") },
  },
  TSETH = { title = header("mrc.tseth", "TSETH") },
  RETH = { title = header("mrc.reth", "RETH"),
    { 0, 8, ProtoField.uint64("mrc.reth.va", "Address", base.HEX) },
    { 8, 4, u32("mrc.reth.rkey", "Memory key", base.HEX) },
    { 12, 4, u32("mrc.reth.len", "Message length") },
  },
  ImmDt = { title = header("mrc.immdt", "ImmDt"),
    { 0, 4, u32("mrc.immdt.value", "Immediate data", base.HEX) },
  },
  AETH = { title = header("mrc.aeth", "AETH"),
    { 0, 1, u8("mrc.aeth.syndrome", "Syndrome", base.HEX, wire.syndromes, 0x7F) },
    { 1, 3, u24("mrc.aeth.msn", "Messages complete") },
  },
  SETH = { title = header("mrc.sack", "SETH"),
    { 0, 2, u16("mrc.sack.m", "Path mark", base.DEC, wire.marks, 0x0060) },
    { 0, 2, flag("mrc.sack.pr", "Answers a probe", 16, yes_no, 0x0002) },
    { 4, 4, u32("mrc.sack.ev", "EV answered", base.HEX) },
    { 8, 2, u16("mrc.sack.spdcid", "Source context", base.HEX) },
    { 10, 2, u16("mrc.sack.dpdcid", "Destination context", base.HEX) },
    { 13, 3, u24("mrc.sack.cack_psn", "Cumulative PSN") },
    { 16, 1, u8("mrc.sack.cc_type", "CC type", base.DEC, nil, 0xF0) },
    { 16, 1, u8("mrc.sack.cc_flags", "CC flags", base.HEX, nil, 0x0F) },
    { 17, 1, u8("mrc.sack.mpr", "Window in units of 128 PSNs") },
    { 18, 2, ProtoField.int16("mrc.sack.sack_offset", "Bitmap minus cumulative PSN") },
    { 20, 8, ProtoField.uint64("mrc.sack.bitmap", "Bitmap", base.HEX) },
  },
  CC_STATE = { title = header("mrc.sack.cc_state", "CC_STATE"),
    { 0, 2, u16("mrc.sack.clock", "Reflected sender clock") },
    { 2, 2, u16("mrc.sack.ooo", "Out-of-order count", base.DEC, nil, 0x7FFF) },
    { 4, 1, flag("mrc.sack.restore_cwnd", "Restore the window", 8, yes_no, 0x80) },
    { 4, 1, u8("mrc.sack.rcv_cwnd_pen", "Window penalty", base.DEC, nil, 0x7F) },
    { 5, 3, u24("mrc.sack.rcvd", "Received, in units of 256 bytes") },
  },
  NETH = { title = header("mrc.nack", "NETH"),
    { 2, 1, u8("mrc.nack.reason", "Reason", base.HEX, wire.nack_reasons) },
    { 3, 1, u8("mrc.nack.vendor", "Vendor information", base.HEX) },
    { 4, 4, u32("mrc.nack.ev", "EV of the refused packet", base.HEX) },
    { 8, 2, u16("mrc.nack.spdcid", "Source context", base.HEX) },
    { 10, 2, u16("mrc.nack.dpdcid", "Destination context", base.HEX) },
    { 13, 3, u24("mrc.nack.psn", "Refused PSN") },
    { 16, 1, u8("mrc.nack.cc_type", "CC type", base.DEC, nil, 0xF0) },
    { 16, 1, u8("mrc.nack.cc_flags", "CC flags", base.HEX, nil, 0x0F) },
    { 18, 2, u16("mrc.nack.clock", "Reflected sender clock") },
  },
  PETH = { title = header("mrc.probe", "PETH"),
    { 3, 1, u8("mrc.probe.vendor", "Vendor information", base.HEX) },
    { 4, 2, u16("mrc.probe.id", "Probe id") },
    { 8, 2, u16("mrc.probe.spdcid", "Source context", base.HEX) },
    { 10, 2, u16("mrc.probe.dpdcid", "Destination context", base.HEX) },
  },
  ERTH = { title = header("mrc.erth", "ERTH"),
    { 0, 2, u16("mrc.erth.op", "Operation", base.DEC, wire.endpoint_ops, 0x0003) },
    { 3, 1, u8("mrc.erth.vendor", "Vendor information", base.HEX) },
    { 4, 4, u32("mrc.erth.port_status", "Usable ports", base.HEX) },
  },
  EETH = { title = header("mrc.eeth", "EETH"),
    { 0, 2, u16("mrc.eeth.op", "Operation", base.DEC, wire.endpoint_ops, 0x000C) },
    { 28, 2, u16("mrc.eeth.clock", "Reflected sender clock") },
  },
}

-- Fields that not every packet of a kind has, and what we found out ourselves.
local f = {
  psn = u24("mrc.psn", "Packet sequence number", base.DEC),
  sack_offset = ProtoField.int16("mrc.sack.offset", "Trigger minus cumulative PSN"),
  sack_probe_id = u16("mrc.sack.probe_id", "Probe answered"),
  sack_trigger = u24("mrc.sack.trigger_psn", "PSN answered"),
  sack_ranges = ProtoField.string("mrc.sack.ranges", "PSNs in the bitmap"),
  erth_id = u16("mrc.erth.id", "Request id"),
  eeth_id = u16("mrc.eeth.id", "Request id"),
  encrypted = ProtoField.bytes("mrc.seal.encrypted", "Encrypted"),
  tag = ProtoField.bytes("mrc.seal.tag", "Tag"),
  payload = ProtoField.bytes("mrc.payload", "Payload"),
  payload_length = u32("mrc.payload_length", "Payload length"),
  padding = ProtoField.bytes("mrc.padding", "Padding"),
  rest = ProtoField.bytes("mrc.rest", "Bytes that mean nothing"),
  icrc = u32("mrc.icrc", "ICRC", base.HEX),
  icrc_status = u8("mrc.icrc.status", "ICRC status", base.DEC, wire.icrc_states),
  ev = u32("mrc.ev", "Entropy value", base.HEX),
  process = u8("mrc.process", "Receiving process"),
  ce = flag("mrc.ce", "Congestion experienced", base.NONE, yes_no),
  trim = u8("mrc.trim", "Trim", base.DEC, wire.trim_names),
  plane = u16("mrc.srv6.plane", "Plane"),
  path = ProtoField.string("mrc.srv6.path", "Path still to go"),
  first_frame = ProtoField.framenum("mrc.first_frame", "This PSN was first seen in", base.NONE,
        frametype.RETRANS_PREV),
}

local all_fields = {}
local function declare(list)
  for _, entry in ipairs(list) do
    all_fields[#all_fields + 1] = entry[3]
  end
end
declare(timestamp)
for _, layout in pairs(layouts) do
  all_fields[#all_fields + 1] = layout.title
  declare(layout)
end
for _, field in pairs(f) do
  all_fields[#all_fields + 1] = field
end
mrc.fields = all_fields

local severity = { note = expert.severity.NOTE, warn = expert.severity.WARN,
                   error = expert.severity.ERROR }
local function new_expert(name, text, group, level)
  return ProtoExpert.new("mrc.expert." .. name, text, group, level)
end
local e = {
  retransmission = new_expert("retransmission", "Retransmission", expert.group.SEQUENCE,
                              severity.note),
  duplicate = new_expert("duplicate", "PSN was seen before", expert.group.SEQUENCE, severity.warn),
  trimmed = new_expert("trimmed", "A switch cut off the payload", expert.group.SEQUENCE,
                       severity.warn),
  ce = new_expert("ce", "Congestion experienced", expert.group.SEQUENCE, severity.note),
  mark = new_expert("mark", "The receiver warns of a path", expert.group.RESPONSE_CODE,
                    severity.note),
  nack = new_expert("nack", "Packet refused", expert.group.RESPONSE_CODE, severity.note),
  nak = new_expert("nak", "Request failed", expert.group.RESPONSE_CODE, severity.error),
  icrc = new_expert("icrc", "Wrong ICRC", expert.group.CHECKSUM, severity.error),
  truncated = new_expert("truncated", "Packet ends within its headers", expert.group.MALFORMED,
                         severity.error),
  refused = new_expert("refused", "Endpoints drop this packet", expert.group.PROTOCOL,
                       severity.warn),
}
mrc.experts = e

---------------------------------------------------------------------------------------------------
-- Preferences

mrc.prefs.ports = Pref.range("UDP ports", "4791-5046",
  "Destination ports of MRC packets: the port of the device, then one for each further process " ..
  "of a host", 65535)
mrc.prefs.check_icrc = Pref.bool("Check the ICRC", true,
  "Compute the ICRC of packets that were captured whole")
mrc.prefs.dscp_trimmed = Pref.uint("DSCP of trimmed packets", 12,
  "Code point that switches give to packets they cut")
mrc.prefs.dscp_trimmed_last_hop = Pref.uint("DSCP of packets trimmed at the last hop", 16,
  "Code point that the last switch gives to packets it cuts")

---------------------------------------------------------------------------------------------------
-- The IP and UDP headers around a packet

local ipv4_field, ipv6_field, udp_field = Field.new("ip"), Field.new("ipv6"), Field.new("udp")
local icmp_field, icmpv6_field = Field.new("icmp"), Field.new("icmpv6")
local interface_field = Field.new("frame.interface_id")

local ipv6_bytes, udp_bytes = 40, 8
local next_ipv6, next_routing = 41, 43

-- The first `length` bytes of a header in a list of field infos, chosen by `fits`; the last wins.
local function find_header(infos, length, fits)
  local found, offset
  for _, info in ipairs(infos) do
    local range = info.range
    if range and range:len() >= length then
      local raw = range:raw(0, length)
      if fits(info.offset, raw) then
        found, offset = raw, info.offset
      end
    end
  end
  return found, offset
end

local function traffic_class(ip, is_v4)
  if is_v4 then
    return ip:byte(2)
  end
  return band(ip:byte(1), 0x0F) * 16 + rshift(ip:byte(2), 4)
end

-- The IPv6 header that carries the inner one: immediately before it, or with a routing header.
local function find_carrier(inner_offset)
  return find_header({ ipv6_field() }, ipv6_bytes, function(offset, raw)
    local next_header = raw:byte(7)
    if next_header == next_ipv6 then
      return offset + ipv6_bytes == inner_offset
    end
    return next_header == next_routing and offset + ipv6_bytes < inner_offset
  end)
end

-- What the packet's headers say: ip and udp (raw), carrier (raw), entropy, dscp, ce. Everything but
-- the entropy is nil where Wireshark did not come here by IP and UDP.
local function surroundings(tvb, pinfo)
  local around = { entropy = pinfo.src_port }
  local udp_offset = tvb:offset() - udp_bytes
  local function ends_before_udp(length)
    return function(offset) return offset + length == udp_offset end
  end
  around.udp = find_header({ udp_field() }, udp_bytes, ends_before_udp(0))
  local ip, offset = find_header({ ipv6_field() }, ipv6_bytes, ends_before_udp(ipv6_bytes))
  if not ip then
    ip, offset = find_header({ ipv4_field() }, 20, ends_before_udp(20))
    around.is_v4 = ip ~= nil
  end
  if not ip then
    return around
  end
  around.ip, around.carrier = ip, find_carrier(offset)
  if not around.is_v4 then
    around.entropy = around.entropy + ip:byte(3) * 0x1000000 + ip:byte(4) * 0x10000
  end
  local inner = traffic_class(ip, around.is_v4)
  local outer = around.carrier and traffic_class(around.carrier) or inner
  around.dscp = rshift(outer, 2)
  around.ce = band(inner, 3) == 3 or band(outer, 3) == 3
  if around.dscp == mrc.prefs.dscp_trimmed then
    around.trim = 1
  elseif around.dscp == mrc.prefs.dscp_trimmed_last_hop then
    around.trim = 2
  end
  return around
end

-- The role of a uSID in the default plan.
local function usid_role(usid)
  if usid < 0x0100 then return "uSID" end
  if usid < 0x1000 then return "host" end
  if usid < 0x8000 then return "T0" end
  if usid < 0xC000 then return "T1" end
  return usid < 0xE000 and "T2" or "uSID"
end

local function usid_path(carrier)
  local hops = {}
  for at = 29, 39, 2 do
    local usid = carrier:byte(at) * 256 + carrier:byte(at + 1)
    if usid == 0 then break end
    hops[#hops + 1] = ("%s %04x"):format(usid_role(usid), usid)
  end
  return table.concat(hops, " > ")
end

---------------------------------------------------------------------------------------------------
-- What earlier packets say

-- By interface, addresses and queue pair: the highest PSN, without wrapping, and where each was
-- seen first.
local streams = {}
-- By frame number and place in the train: what was found when the frame was new. Frames may be
-- dissected again in any order.
local findings = {}
-- The packets of the frame dissected last, for the statistics.
local last_frame = {}

-- No window is larger; a PSN further back belongs to a new connection of the same number.
local max_window = 255 * 128

local function is_quoted()
  return icmp_field() ~= nil or icmpv6_field() ~= nil
end

local function find_stream(p, pinfo)
  local interface = interface_field()
  local key = table.concat({ interface and tostring(interface.value) or "", tostring(pinfo.src),
                             tostring(pinfo.dst), p.qp }, " ")
  local stream = streams[key]
  if not stream then
    stream = { highest = p.psn, seen = {} }
    streams[key] = stream
  end
  return stream
end

-- The frame in which this PSN of a write was first seen, if that was not this one.
local function analyse(p, pinfo, around, place)
  local number = pinfo.number
  local key = number .. " " .. place
  local found = findings[key]
  if found or not around.ip or is_quoted() then
    return found or {}
  end
  found = {}
  findings[key] = found
  local stream = find_stream(p, pinfo)
  local ahead = wire.psn_plus(p.psn, -stream.highest)
  if ahead >= 0x800000 then ahead = ahead - 0x1000000 end
  if ahead < -max_window then
    stream.seen, stream.highest, ahead = {}, p.psn, 0
  end
  local psn = stream.highest + ahead
  if ahead > 0 then stream.highest = psn end
  local first = stream.seen[psn]
  if first and first.frame < number then
    found.frame, found.was_trimmed = first.frame, first.trimmed
  end
  if not first or first.trimmed then
    stream.seen[psn] = { frame = number, trimmed = p.trimmed }
  end
  return found
end

---------------------------------------------------------------------------------------------------
-- Showing a packet

local function ports_text(mask)
  local list = {}
  for port = 1, 32 do
    if band(rshift(mask, port - 1), 1) == 1 then list[#list + 1] = port end
  end
  return #list > 0 and table.concat(list, ",") or "none"
end

local function sack_text(p)
  local text = ("SACK QP 0x%06x up to PSN %d"):format(p.qp, p.cack)
  if p.ranges ~= "" then text = text .. ", and " .. p.ranges end
  if p.answers_probe then text = text .. (", answers probe %d"):format(p.probe_id) end
  if p.mark ~= 0 then text = text .. ", " .. wire.marks[p.mark] end
  return text .. (", EV 0x%08x"):format(p.answered_ev)
end

local function write_text(p)
  local text = ("%s QP 0x%06x PSN %d MSN %d"):format(wire.opcodes[p.opcode], p.qp, p.psn, p.msn)
  if p.message_length then
    local length = p.payload_length or 0
    text = text .. (wire.is_single(p.opcode) and (", %d bytes"):format(length)
                    or (", %d of %d bytes"):format(length, p.message_length))
  end
  if p.immediate then text = text .. (", immediate 0x%08x"):format(p.immediate) end
  return text
end

local function endpoint_text(p)
  local text = ("%s %d: %s"):format(wire.opcodes[p.opcode], p.psn % 0x10000,
                                    wire.endpoint_ops[p.op] or "reserved operation")
  return p.ports and p.op == 0 and text .. ", usable ports " .. ports_text(p.ports) or text
end

local function is_ack(p) return p.syndrome == 0x1F end

local function syndrome_text(p)
  return wire.syndromes[p.syndrome] or ("syndrome 0x%02x"):format(p.syndrome)
end

local function acknowledgement_text(p)
  local place = ("QP 0x%06x PSN %d"):format(p.qp, p.psn)
  if is_ack(p) then return ("ACK %s MSN %d"):format(place, p.aeth_msn) end
  return ("NAK %s: %s"):format(place, syndrome_text(p))
end

local function sealed_text(p)
  local number = p.sealed.high * 2 ^ 32 + p.sealed.low
  local psn = wire.is_write(p.opcode) and (" PSN %d"):format(p.psn) or ""
  return ("Sealed %s QP 0x%06x%s, key %d, packet %.0f"):format(wire.opcodes[p.opcode], p.qp, psn,
    p.sealed.key, number)
end

local function packet_text(p)
  if p.sealed then return sealed_text(p) end
  if p.msn then return write_text(p) end
  if p.cack then return sack_text(p) end
  if p.syndrome then return acknowledgement_text(p) end
  if p.op then return endpoint_text(p) end
  if p.nack_psn then
    return ("NACK QP 0x%06x PSN %d: %s, EV 0x%08x"):format(p.qp, p.nack_psn,
      wire.nack_reasons[p.reason] or "unknown reason", p.answered_ev)
  end
  if p.probe_id then return ("Probe %d QP 0x%06x"):format(p.probe_id, p.qp) end
  local name = wire.opcodes[p.opcode] or ("Unknown opcode 0x%02x"):format(p.opcode)
  return p.missing and name .. " (cut short)" or name
end

local function flags_text(p, around, found, status)
  local text = ""
  if wire.is_write(p.opcode) or wire.is_probe(p.opcode) then
    text = (", EV 0x%08x"):format(around.entropy)
  end
  if around.trim then text = text .. " [" .. wire.trim_names[around.trim] .. "]" end
  if p.rtx then text = text .. " [retransmission]" end
  if found.frame and not p.rtx and not found.was_trimmed then text = text .. " [duplicate]" end
  if around.ce then text = text .. " [CE]" end
  if status == wire.icrc_wrong then text = text .. " [ICRC wrong]" end
  return text
end

-- Adds the fields that were captured; headers end at `stop`.
local function add_fields(tvb, subtree, layout, at, stop)
  for _, entry in ipairs(layout) do
    local from, length = at + entry[1], entry[2]
    if from + length <= stop then subtree:add(entry[3], tvb(from, length)) end
  end
end

local function add_generated(tree, field, range, value)
  local item = tree:add(field, range, value)
  item:set_generated()
  return item
end

-- Fields whose presence or meaning depends on others, for headers that are complete.
local extras = {
  BTH = function(p, tvb, subtree)
    if wire.is_endpoint_op(p.opcode) then
      subtree:add(p.opcode == 0xD8 and f.erth_id or f.eeth_id, tvb(10, 2))
    elseif not wire.is_probe(p.opcode) then
      subtree:add(f.psn, tvb(9, 3))
    end
  end,
  SETH = function(p, tvb, subtree, at)
    if p.answers_probe then
      subtree:add(f.sack_probe_id, tvb(at + 2, 2))
    else
      subtree:add(f.sack_offset, tvb(at + 2, 2))
      add_generated(subtree, f.sack_trigger, tvb(at + 2, 2), p.trigger)
    end
    local text = p.ranges ~= "" and p.ranges or "none"
    add_generated(subtree, f.sack_ranges, tvb(at + 18, 10), text)
      :append_text((" (%d)"):format(p.range_count))
    if p.mark == 1 or p.mark == 2 then
      subtree:add_proto_expert_info(e.mark, "The receiver says: " .. wire.marks[p.mark])
    end
  end,
  AETH = function(p, _, subtree)
    if not is_ack(p) then subtree:add_proto_expert_info(e.nak, "NAK: " .. syndrome_text(p)) end
  end,
  NETH = function(p, _, subtree)
    subtree:add_proto_expert_info(e.nack,
      "Packet refused: " .. (wire.nack_reasons[p.reason] or "unknown reason"))
  end,
}

local function show_headers(p, tvb, tree)
  local stop = math.min(p.limit, tvb:captured_len())
  for _, header in ipairs(p.headers) do
    local name, at = header.name, header.at
    if at >= stop then break end
    local range = tvb(at, math.min(wire.header_bytes[name], stop - at))
    local subtree = tree:add(layouts[name].title, range)
    add_fields(tvb, subtree, layouts[name], at, stop)
    if wire.timestamp_at[name] then
      add_fields(tvb, subtree, timestamp, at + wire.timestamp_at[name], stop)
    end
    if p.at[name] and extras[name] then extras[name](p, tvb, subtree, at) end
  end
end

-- Payload and padding of a write; else what should not be there.
local function show_tail(p, tvb, tree)
  local stop = math.min(p.limit, tvb:captured_len())
  if p.missing or p.stop > stop then return end
  if not p.payload_length or p.payload_length < 0 then
    if p.stop < stop then tree:add(f.rest, tvb(p.stop, stop - p.stop)) end
    return
  end
  add_generated(tree, f.payload_length, tvb(p.stop, 0), p.payload_length)
  local payload_end = math.min(p.stop + p.payload_length, stop)
  if payload_end > p.stop then tree:add(f.payload, tvb(p.stop, payload_end - p.stop)) end
  if payload_end < stop then tree:add(f.padding, tvb(payload_end, stop - payload_end)) end
end

local function show_sealed_tail(p, tvb, tree)
  local stop = math.min(p.limit, tvb:captured_len())
  if p.missing or p.trimmed then return end
  if p.stop < stop then tree:add(f.encrypted, tvb(p.stop, stop - p.stop)) end
  if tvb:captured_len() >= p.limit + wire.seal_tag_bytes then
    tree:add(f.tag, tvb(p.limit, wire.seal_tag_bytes))
  end
end

local function show_icrc(tvb, tree, around, status, expected)
  local reported = tvb:reported_len()
  if around.trim or reported < 4 or tvb:captured_len() < reported then return end
  local range = tvb(reported - 4, 4)
  local item = tree:add_le(f.icrc, range)
  add_generated(tree, f.icrc_status, range, status)
  if status == wire.icrc_wrong then
    item:append_text((", should be 0x%08x"):format(expected))
    item:add_proto_expert_info(e.icrc)
  end
end

local function show_surroundings(p, tvb, tree, around)
  add_generated(tree, f.ev, tvb(0, 0), around.entropy)
  if p.qp and not wire.is_endpoint_op(p.opcode) then
    add_generated(tree, f.process, tvb(5, 1), rshift(p.qp, 16))
  end
  if not around.ip then return end
  local ce = add_generated(tree, f.ce, tvb(0, 0), around.ce)
  if around.ce then ce:add_proto_expert_info(e.ce) end
  if around.trim then
    add_generated(tree, f.trim, tvb(0, 0), around.trim):add_proto_expert_info(e.trimmed)
  end
  if around.carrier then
    local carrier = around.carrier
    add_generated(tree, f.plane, tvb(0, 0), carrier:byte(27) * 256 + carrier:byte(28))
    add_generated(tree, f.path, tvb(0, 0), usid_path(carrier))
  end
end

-- A retransmission repeats a PSN by intent; one that follows a trimmed packet is its repair.
local function show_findings(p, tvb, tree, found)
  if p.rtx then tree:add_proto_expert_info(e.retransmission) end
  if not found.frame then return end
  local item = add_generated(tree, f.first_frame, tvb(9, 3), found.frame)
  if found.was_trimmed then
    item:append_text(", trimmed")
  elseif not p.rtx then
    item:add_proto_expert_info(e.duplicate)
  end
end

local function show_problems(p, tvb, tree)
  if p.missing == "packet" then
    tree:add_proto_expert_info(e.truncated)
  elseif p.missing == "capture" or tvb:captured_len() < tvb:reported_len() then
    tree:append_text((", %d of %d bytes captured"):format(tvb:captured_len(),
                                                          tvb:reported_len()))
  end
  local reason = wire.refusal(p)
  if reason then tree:add_proto_expert_info(e.refused, "Endpoints drop this packet: " .. reason) end
end

-- The ICRC of the packet looked at last: the decision whose packet it is needs it as well.
local last_icrc = {}
local function icrc_status(tvb, pinfo, around)
  local key = table.concat({ pinfo.number, tvb:offset(), tvb:reported_len() }, " ")
  if last_icrc.key ~= key then
    local status, expected = wire.icrc_status(tvb, around)
    last_icrc = { key = key, status = status, expected = expected }
  end
  return last_icrc.status, last_icrc.expected
end

-- Shows one packet and returns its text and what the statistics need.
local function dissect_packet(tvb, pinfo, tree, around, place)
  local p = wire.read_packet(tvb, around.trim)
  local status, expected = wire.icrc_unchecked, nil
  if mrc.prefs.check_icrc and p.version ~= wire.sealed_version then
    status, expected = icrc_status(tvb, pinfo, around)
  end
  local found = wire.is_write(p.opcode) and p.at.BTH and analyse(p, pinfo, around, place) or {}
  local text = packet_text(p)
  local top = tree:add(mrc, tvb(), "Multipath Reliable Connection, " .. text)
  show_headers(p, tvb, top)
  if p.version == wire.sealed_version then
    show_sealed_tail(p, tvb, top)
  else
    show_tail(p, tvb, top)
    show_icrc(tvb, top, around, status, expected)
  end
  show_surroundings(p, tvb, top, around)
  show_findings(p, tvb, top, found)
  show_problems(p, tvb, top)
  return text .. flags_text(p, around, found, status), { packet = p, around = around }
end

function mrc.init()
  streams, findings, last_frame, last_icrc = {}, {}, {}, {}
end

-- The length of the packets in this datagram; its own unless it is a train.
local function step_of(tvb, pinfo, around)
  local total = tvb:reported_len()
  -- Sealed packets have no ICRC by which a train could be told.
  if wire.read_packet(tvb, around.trim).sealed then return total end
  if not mrc.prefs.check_icrc or icrc_status(tvb, pinfo, around) ~= wire.icrc_wrong then
    return total
  end
  return wire.train_step(tvb, around) or total
end

local function dissect(tvb, pinfo, tree)
  local around = surroundings(tvb, pinfo)
  local total, step = tvb:reported_len(), step_of(tvb, pinfo, around)
  pinfo.cols.protocol = "MRC"
  last_frame = { number = pinfo.number }
  if step == total then
    pinfo.cols.info, last_frame[1] = dissect_packet(tvb, pinfo, tree, around, 1)
    return tvb:captured_len()
  end
  local texts = {}
  for at = 0, total - 1, step do
    local part, place = tvb(at, math.min(step, total - at)):tvb(), #texts + 1
    texts[place], last_frame[place] =
      dissect_packet(part, pinfo, tree, wire.around_part(around, part:reported_len()), place)
  end
  pinfo.cols.info = ("%d packets: %s"):format(#texts, table.concat(texts, " | "))
  return total
end

---------------------------------------------------------------------------------------------------
-- Which packets are ours

-- Dissectors of other protocols that had our ports before; they get what is not MRC.
local displaced = {}
local our_ports = {}
local registered_range = nil
local rocev2 = DissectorTable.get("udp.port"):get_dissector(4791)

local function has_our_opcode(tvb)
  if tvb:captured_len() < 2 then return false end
  local opcode = tvb(0, 1):uint()
  return opcode >= wire.first_opcode and opcode <= wire.last_opcode
end

-- A packet that an endpoint would take, as far as it was captured; with `proof` also by its ICRC.
local function is_sound(tvb, pinfo, proof)
  if not has_our_opcode(tvb) then return false end
  local around = surroundings(tvb, pinfo)
  local p = wire.read_packet(tvb, around.trim)
  if not p.at.BTH then return false end
  local whole = tvb:captured_len() == tvb:reported_len()
  local sound = not wire.refusal(p)
  if sound and p.sealed then return true end
  if sound and (not proof or not whole) then return true end
  local status = sound and icrc_status(tvb, pinfo, around)
  return status == wire.icrc_good or status == wire.icrc_headers or
         wire.train_step(tvb, around) ~= nil
end

-- What is not ours goes to whom the port belonged. A packet that is too short for that dissector
-- makes the call fail; Wireshark would say so itself if we did not stand between.
local function hand_on(other, tvb, pinfo, tree)
  local done, consumed = pcall(other.call, other, tvb, pinfo, tree)
  if done then return consumed end
  tree:add_expert_info(PI_MALFORMED, PI_ERROR, "Malformed packet: " .. tostring(other))
  return tvb:captured_len()
end

-- Ports that nobody else has: whatever has an opcode of ours is shown, damaged or not. Where
-- another protocol lives as well, or the port is that of the sender, only sound packets are taken.
function mrc.dissector(tvb, pinfo, tree)
  local matched = pinfo.match_uint
  local other = displaced[matched]
  local shared = our_ports[matched] and
                 (not our_ports[pinfo.dst_port] or (other ~= nil and matched ~= 4791))
  local ours = shared and is_sound(tvb, pinfo, false) or not shared and has_our_opcode(tvb)
  if ours then return dissect(tvb, pinfo, tree) end
  if other then return hand_on(other, tvb, pinfo, tree) end
  return 0
end

local function parse_range(text)
  local ports = {}
  for first, last in text:gmatch("(%d+)%-?(%d*)") do
    for port = tonumber(first), math.min(tonumber(last) or tonumber(first), 65535) do
      ports[port] = true
    end
  end
  return ports
end

local function register_ports()
  local range = tostring(mrc.prefs.ports)
  if range == registered_range then return end
  local ports = DissectorTable.get("udp.port")
  for port in pairs(our_ports) do
    ports:remove(port, mrc)
    if displaced[port] then ports:add(port, displaced[port]) end
  end
  registered_range, our_ports, displaced = range, parse_range(range), {}
  for port in pairs(our_ports) do
    displaced[port] = ports:get_dissector(port)
    ports:add(port, mrc)
  end
end

function mrc.prefs_changed()
  last_icrc = {}
  register_ports()
end
register_ports()

mrc:register_heuristic("udp", function(tvb, pinfo, tree)
  if not is_sound(tvb, pinfo, not our_ports[pinfo.dst_port]) then return false end
  dissect(tvb, pinfo, tree)
  return true
end)

stats.register(wire, function() return last_frame end)
