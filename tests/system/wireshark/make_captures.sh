#!/bin/sh
# Makes the captures of this folder anew: make_captures.sh <mrc>. Then run wireshark_test.py with
# --update and read what changed.
set -eu
mrc=$1
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
