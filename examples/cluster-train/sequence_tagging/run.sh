#!/bin/sh
# Two trainers, in seed 003's words. What is typed behind `sh run.sh` is added.
cd "$(dirname "$0")" || exit 1
cp ./*.py words.txt ./thirdparty || exit 1

paddle cluster_train \
           --config cluster_conf.py \
           --time_limit 00:30:00 \
           --submitter "${USER:-me}" \
           --num_nodes 2 \
           --job_priority normal \
           --trainer_count 1 \
           --num_passes 6 \
           --log_period 20 \
           --dot_period 5 \
           --saving_period 3 \
           --thirdparty ./thirdparty \
           --job_name sequence_tagging "$@"
