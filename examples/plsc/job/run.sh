#!/bin/sh
# Started once for every trainer, in a folder of its own that holds these files; alone it works too. train.py takes the rest.
cd "$(dirname "$0")" || exit 1
exec python3 -u train.py "$@"
