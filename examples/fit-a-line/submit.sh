#!/bin/sh
# Two trainers with PaddlePaddle; without the last two options one trainer fits the line alone.
cd "$(dirname "$0")" || exit 1
exec paddlecloud submit_job \
    --job_name=fit-a-line \
    --files=job \
    --start_cmd="sh run.sh" \
    --instance_count=2 \
    --distribute_job_type=NCCL2 \
    "$@"
