#!/bin/sh
# Makes the data and puts it where the config's work_dir is: ~/demos/sequence_tagging, in your home on the PFS.
cd "$(dirname "$0")" || exit 1
python3 make_data.py data || exit 1
home=$(paddlecloud ls -o name /pfs/local/home | head -n 1)
paddlecloud mkdir "$home/demos/sequence_tagging" && paddlecloud cp data/* "$home/demos/sequence_tagging/"
