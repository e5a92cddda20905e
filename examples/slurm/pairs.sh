#!/bin/sh
# The nodes of this job by themselves and in pairs, before the program runs. In a job script:
#
#   ./pairs.sh || exit 1
#
# Needs ssh between the nodes without a question. What is slow does not stop the job.

hosts=$(mktemp) || exit 1
trap 'rm -f "$hosts"' EXIT
scontrol show hostnames "$SLURM_JOB_NODELIST" > "$hosts"
mrc check --hosts "$hosts" --seconds "${SECONDS_OF_TRANSFER:-10}"
