#!/bin/sh
# Makes the data and puts it where the config's work_dir is: ~/demos/image_classification, in your home on the PFS.
cd "$(dirname "$0")" || exit 1
python3 make_data.py data || exit 1
home=$(paddlecloud ls -o name /pfs/local/home | head -n 1)
paddlecloud mkdir "$home/demos/image_classification" && paddlecloud cp data/* "$home/demos/image_classification/"
