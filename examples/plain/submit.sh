#!/bin/sh
# Two trainers that meet at trainer 0; without the last two options one trainer fits the line alone.
cd "$(dirname "$0")" || exit 1
exec paddlecloud submit_job \
    --job_name=plain \
    --files=job \
    --start_cmd="sh run.sh" \
    --instance_count=2 \
    --distribute_job_type=NCCL2 \
    "$@"
