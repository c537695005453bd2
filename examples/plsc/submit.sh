#!/bin/sh
# Two trainers, each with a half of the classes. What follows goes to submit_job.
cd "$(dirname "$0")" || exit 1
exec paddlecloud submit_job \
    --job_name=plsc \
    --files=job \
    --start_cmd="sh run.sh" \
    --instance_count=2 \
    --distribute_job_type=NCCL2 \
    "$@"
