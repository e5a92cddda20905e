-- Statistics of MRC packets: tshark -q -z mrc,ev[,filter]
--
-- A part of mrc.lua, which loads it; loaded by itself it does nothing.

local columns = {
  { "writes", "%8d" }, { "bytes", "%12d" }, { "rtx", "%6d" }, { "trimmed", "%8d" },
  { "CE", "%6d" }, { "probes", "%7d" }, { "SACKs", "%7d" }, { "skips", "%6d" },
  { "NACKs", "%6d" },
}

local function new_table()
  local rows = {}
  return rows, function(sender, ev, column, amount)
    local key = ("%s %08x"):format(sender, ev)
    local row = rows[key] or { sender = sender, ev = ev }
    rows[key] = row
    row[column] = (row[column] or 0) + (amount or 1)
  end
end

-- Counts a packet for the path it took, or for the path it reports on.
local function count_packet(wire, count, p, around, source, destination)
  if wire.is_write(p.opcode) or wire.is_probe(p.opcode) then
    local ev = around.entropy
    count(source, ev, wire.is_probe(p.opcode) and "probes" or "writes")
    if p.payload_length then count(source, ev, "bytes", math.max(p.payload_length, 0)) end
    if p.rtx then count(source, ev, "rtx") end
    if around.trim then count(source, ev, "trimmed") end
    if around.ce then count(source, ev, "CE") end
  elseif p.answered_ev then
    count(destination, p.answered_ev, p.opcode == 0xDC and "SACKs" or "NACKs")
    if p.mark == 1 or p.mark == 2 then count(destination, p.answered_ev, "skips") end
  end
end

local function print_table(rows)
  local keys, widest = {}, #"sender"
  for key, row in pairs(rows) do
    keys[#keys + 1] = key
    widest = math.max(widest, #row.sender)
  end
  table.sort(keys)
  local start = "%-" .. widest .. "s  %-10s"
  local head = start:format("sender", "EV")
  for _, column in ipairs(columns) do
    head = head .. " " .. column[2]:gsub("d", "s"):format(column[1])
  end
  print(("="):rep(#head))
  print("MRC, by entropy value")
  print(head)
  for _, key in ipairs(keys) do
    local row = rows[key]
    local line = start:format(row.sender, ("0x%08x"):format(row.ev))
    for _, column in ipairs(columns) do
      line = line .. " " .. column[2]:format(row[column[1]] or 0)
    end
    print(line)
  end
  print(("="):rep(#head))
end

-- As tshark does for a bad -z of its own.
local function give_up(complaint)
  io.stderr:write("tshark: -z mrc,ev: " .. complaint .. "\n")
  if not gui_enabled() then os.exit(1) end
end

-- Counts what passes `filter` and prints the table at the end.
local function listen(filter, wire, last_frame)
  local rows, count = new_table()
  local made, listener = pcall(Listener.new, "frame",
                               filter and "mrc && (" .. filter .. ")" or "mrc")
  if not made then
    give_up(("'%s' is no display filter"):format(filter))
    return
  end
  function listener.packet(pinfo)
    local last = last_frame()
    if last.number ~= pinfo.number then return end
    for _, entry in ipairs(last) do
      if entry.packet.at.BTH then
        count_packet(wire, count, entry.packet, entry.around, tostring(pinfo.src),
                     tostring(pinfo.dst))
      end
    end
  end
  function listener.draw()
    print_table(rows)
  end
  function listener.reset()
    rows, count = new_table()
  end
end

local stats = {}

-- `wire` is mrc_wire.lua; `last_frame` returns the number of the frame dissected last and,
-- by place, packet and surroundings of what is in it.
function stats.register(wire, last_frame)
  register_stat_cmd_arg("mrc,ev", function(argument)
    local rest = argument and argument:match("^mrc,ev(.*)$") or ""
    if rest ~= "" and not rest:match("^,.") then
      give_up(("'%s' should be mrc,ev or mrc,ev,filter"):format(argument))
    else
      listen(rest ~= "" and rest:sub(2) or nil, wire, last_frame)
    end
  end)
end

return stats
