#!/bin/sh
# Two trainers, in seed 003's words. What is typed behind `sh run.sh` is added.
cd "$(dirname "$0")" || exit 1
cp ./*.py ./thirdparty || exit 1
config=cluster.vgg_16_cifar.py

paddle cluster_train \
           --config $config \
           --time_limit 00:30:00 \
           --submitter "${USER:-me}" \
           --num_nodes 2 \
           --job_priority normal \
           --trainer_count 1 \
           --num_passes 4 \
           --log_period 10 \
           --dot_period 2 \
           --saving_period 2 \
           --thirdparty ./thirdparty \
           --job_name image_classification "$@"
