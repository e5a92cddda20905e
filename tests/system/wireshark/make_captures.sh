#!/bin/sh
# Makes the captures of this folder anew: make_captures.sh <mrc>. Then run wireshark_test.py with
# --update and read what changed.
set -eu
mrc=$(realpath "$1")
cd "$(dirname "$0")/captures"

# Trimmed packets, congestion marks, losses, probes; only the beginning of each frame.
"$mrc" sim --planes 1 --hosts 12 --t0 2 --t1 2 --gbps 100 --workload incast --senders 11 \
  --bytes 16kB --mtu 8192 --evs 4 --loss 0.02 --seed 7 --queue capacity_trimming=0.01 \
  --queue capacity_last_hop_trimming=0.01 --queue ecn_min=0.002 --queue ecn_max=0.01 \
  --pcap incast.pcapng --pcap-link 't0:0>host:0/plane:0' --pcap-link 'host:0>t0:0/plane:0' \
  --pcap-snap 160
# A host loses one of its two planes and says so.
"$mrc" sim --planes 2 --hosts 4 --t0 2 --t1 2 --workload pair --source 1 --destination 3 \
  --bytes 5kB --mtu 256 --evs 4 --seed 3 --fail 'host:1/t0:0/plane:0 down @1us for 200us' \
  --pcap fault.pcapng --pcap-link 'host:1>t0:0/plane:1' --pcap-link 't0:0>host:1/plane:1' \
  --pcap-snap 0
# No SRv6; the first and the last link of one direction.
"$mrc" sim --planes 1 --hosts 4 --t0 2 --t1 2 --workload pair --source 1 --destination 3 \
  --bytes 2kB --mtu 256 --evs 8 --structured --loss 0.1 --seed 4 --verify \
  --pcap structured.pcapng --pcap-link 'host:1>t0:0/plane:0' --pcap-link 't0:0>host:1/plane:0' \
  --pcap-link 't0:1>host:3/plane:0' --pcap-snap 0
# Not MRC.
"$mrc" sim --planes 1 --hosts 4 --t0 2 --t1 2 --workload pair --source 1 --destination 3 \
  --bytes 1kB --mtu 256 --transport rocev2 --pcap rocev2.pcapng \
  --pcap-link 'host:1>t0:0/plane:0' --pcap-link 't0:0>host:1/plane:0' --pcap-snap 0

# Real processes in a lab: three hosts write to one without congestion control over a cable that
# loses 2 %. Some frames of each kind.
lab=$(mktemp -d)
trap '"$mrc" lab down --dir "$lab/l" && rm -r "$lab"' EXIT
"$mrc" lab up --dir "$lab/l" --hosts 4 --planes 1 --mbps 100
"$mrc" lab loss --dir "$lab/l" host:0/plane:0 2%
for host in 1 2 3; do
  "$mrc" lab exec --dir "$lab/l" $host "$mrc" ctl cc create 1 --algorithm none
  "$mrc" lab exec --dir "$lab/l" 0 "$mrc" perf write_imm -p 2851$host &
done
"$mrc" lab capture --dir "$lab/l" host:0/plane:0 "$lab/all.pcapng" --snap 160 &
capture=$!
sleep 1
clients=
for host in 1 2 3; do
  until "$mrc" lab exec --dir "$lab/l" $host "$mrc" perf write_imm -p 2851$host -s 16K -n 8 \
    --cc-profile 1 127.0.0.1; do sleep 0.2; done &
  clients="$clients $!"
done
wait $clients
kill -INT $capture
wait
for filter in mrc mrc.trim mrc.nack 'mrc.bth.rtx == 1' 'mrc.sack.ranges != "none"'; do
  tshark -n -X lua_script:../../../../tools/wireshark/mrc.lua -r "$lab/all.pcapng" -T fields \
    -e frame.number -Y "$filter" | head -20
done | ../pick_frames.py "$lab/all.pcapng" lab.pcapng
