"""The default command of a PaddlePaddle Cloud pserver: `paddle pserver`, or idling where the environment has none."""

from __future__ import annotations

AWAITED_SECONDS = 2.0  # by trainers: PaddlePaddle's own try again, and one that idles serves nobody

_NAMING = (
    "to run a program of yours here, name it: paddlecloud submit -psentry 'sh run.sh' ..., or with the Go client "
    "-entry \"PADDLECLOUD_PSENTRY='sh run.sh' python train.py\""
)
_IDLES = f"paddlecloud: this environment has no paddle pserver, so this task idles until the job ends; {_NAMING}"

# PaddlePaddle of today has a `paddle` too, which takes every word for `version`: its help does not know pserver.
COMMAND = f"""\
if paddle --help 2>/dev/null | grep -qw pserver; then
    exec paddle pserver --use_gpu=0 --port="$PADDLE_INIT_PORT" --ports_num="$PADDLE_INIT_PORTS_NUM" \
        --ports_num_for_sparse="$PADDLE_INIT_PORTS_NUM_FOR_SPARSE" --nics="$PADDLE_INIT_NICS" \
        --comment=paddle_process_k8s --num_gradient_servers="$PADDLE_INIT_NUM_GRADIENT_SERVERS"
fi
cat <<'END'
{_IDLES}
END
command -v python >/dev/null || exec sleep 1000000000
exec python -S -E -u -c '
import os, signal, socket
listener = socket.socket()
try:
    listener.bind((os.environ["POD_IP"], int(os.environ["PADDLE_INIT_PORT"])))
    listener.listen(16)
except OSError as error:
    print("paddlecloud: it cannot listen on PADDLE_INIT_PORT: %s" % error)
    while True:
        signal.pause()
while True:
    caller, address = listener.accept()
    print("paddlecloud: no parameter server here: closed a connection from %s:%d" % address)
    caller.close()
'"""
