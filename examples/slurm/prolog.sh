#!/bin/sh
# Slurm's Prolog on each node of a job: a node whose devices do not work gets no job. Slurm drains the
# node and queues the job again; the lines of `mrc check` are in the node's log (journalctl -t mrc-check).
#
# slurm.conf: Prolog=/etc/slurm/prolog.sh
# MRC_* variables of the job are not here: name the interfaces in /etc/mrc/mrc.toml. Without that a
# device is on loopback, which --strict refuses, as it does an MTU of less than 4 KiB: leave it away to
# let what is only slow pass.

PATH=/usr/local/bin:/usr/bin:/bin
export PATH

said=$(mrc check --strict 2>&1) && exit 0
echo "$said" | logger -t mrc-check
exit 1
