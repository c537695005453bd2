#!/bin/sh
# PaddlePaddle on two trainers, from nothing to its results, by the commands that a user types: each is shown, then run.
set -eu
cd "$(dirname "$0")/.."
results=${RESULTS:-output/demo}
rm -rf "$results"
mkdir -p "$(dirname "$results")"

exec 3>&1
say() {
    if [ -t 1 ]; then printf '\n\033[1m%s\033[0m\n' "$*"; else printf '\n%s\n' "$*"; fi
}

type_in() {
    printf '$ paddlecloud' >&3
    for word in "$@"; do
        case $word in
        *' '*) printf ' "%s"' "$word" >&3 ;;
        *) printf ' %s' "$word" >&3 ;;
        esac
    done
    printf '\n' >&3
    paddlecloud "$@"
}

say "Submit a folder with two trainers; the server that this needs starts by itself."
job=$(type_in submit_job --job_name=fit-a-line --files=examples/fit-a-line/job --start_cmd="sh run.sh" \
    --instance_count=2 --distribute_job_type=NCCL2 | grep -o 'job-[0-9a-f]\{32\}' | tail -n 1)
echo "$job"

say "Where it stands; a job that has to wait says why."
type_in ls --state=live

say "The log of both ranks, live. The first job with these requirements installs them: PaddlePaddle is 200 MB, which
takes half a minute on a quick line and most of the time of this demo. Later jobs find it there."
type_in logs -f "$job"

say "How it ended, and what it left."
type_in query_job --job_id="$job"
echo
type_in get_files --job_id="$job" --download=1 --download_dir="$results"

say "The loss fell:"
grep -h '^pass ' "$results/$job/log/trainer-0.log" | sed -n '1p;$p'

say "Both ranks hold the same model:"
find "$results" -name model.pdparams | sort | xargs cksum

bin=$(dirname "$(command -v paddlecloud)")
cat <<END

The results are in $results. What to type next:
  . $bin/activate
  paddlecloud show $job
  paddlecloud run FOLDER -- sh run.sh       a folder of your own
  paddlecloud --help                        all commands
  paddlecloud down                          stop the server; jobs that run go on
END
