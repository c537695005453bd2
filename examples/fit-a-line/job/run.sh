#!/bin/sh
# Started once for every task of the job, in a folder of its own that holds these files.
exec python3 -u train.py "$@"
