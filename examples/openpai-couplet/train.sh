#!/bin/bash
HOME_DIR=$(cd `dirname $0`; pwd)
echo $HOME_DIR
cd $HOME_DIR

# set environment
TRAIN_DIR=${HOME_DIR}/output
LOG_DIR=${TRAIN_DIR}
DATA_DIR=${HOME_DIR}/data

mkdir -p ${TRAIN_DIR}

# train model
setting=default

echo start training...

python3 couplet.py \
--data_dir=${DATA_DIR} \
--output_dir=${TRAIN_DIR} \
--train_steps=6000 \
--save_checkpoints_steps=2000 2>&1 | tee -a ${LOG_DIR}/train_${setting}.log
