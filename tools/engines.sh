#!/bin/sh
# The engines that tests use, of Debian's packages, and HDFS: installed where one is missing and root may. Harmless everywhere
# else: the tests that need an engine are skipped, and say so.
SLURM="slurm-wlm slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge slurmdbd slurm-wlm-mysql-plugin
    mariadb-server-core mariadb-client-core slurmrestd slurm-wlm-jwt-plugin sudo"
HADOOP="libjersey1-core-java libjersey1-server-java libjersey1-servlet-java libjsr311-api-java"
export DEBIAN_FRONTEND=noninteractive

install() { # NAME PACKAGE…
    name=$1
    shift
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "$name is not installed; its tests are skipped (apt-get install --no-install-recommends $*)" >&2
        return
    fi
    echo "installing $name for its tests …" >&2
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"; } >/dev/null 2>&1 ||
        echo "$name could not be installed; its tests are skipped" >&2
}

postgres() {
    for found in /usr/lib/postgresql/*/bin/postgres; do
        [ -x "$found" ] && return
    done
    # Debian would start one for the whole machine; tests start their own, and end it.
    none=/etc/postgresql-common/createcluster.d/none-for-tests.conf
    if [ "$(id -u)" -eq 0 ]; then
        mkdir -p "${none%/*}" && echo 'create_main_cluster = false' >"$none"
    fi
    install PostgreSQL postgresql
    rm -f "$none"
}

slurm() {
    PATH=$PATH:/usr/sbin:/sbin
    for program in munged slurmctld slurmd sbatch slurmdbd mariadbd mariadb-install-db slurmrestd sudo; do
        command -v "$program" >/dev/null && continue
        # Debian would start its daemons for the whole machine, where there is an init to do so; tests start their own.
        policy=/usr/sbin/policy-rc.d
        [ "$(id -u)" -eq 0 ] && [ ! -e "$policy" ] && printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && made=$policy
        # shellcheck disable=SC2086 # a list of words
        install Slurm $SLURM
        [ -z "$made" ] || rm -f "$made"
        return
    done
}

hdfs() {
    venv=${VENV:-.venv}
    [ -x "$venv/bin/python" ] || { echo "HDFS needs $venv; its tests are skipped (make $venv/.dev engines)" >&2 && return; }
    wanted=
    [ -e /usr/share/java/jersey1-servlet.jar ] && [ -e /usr/share/java/jsr311-api.jar ] || wanted=$HADOOP
    ls /usr/lib/jvm/java-17-*/bin/java /usr/lib/jvm/java-21-*/bin/java /usr/lib/jvm/java-11-*/bin/java 2>/dev/null |
        grep -q . || wanted="$wanted openjdk-17-jre-headless"
    if [ -n "$wanted" ]; then
        # shellcheck disable=SC2086 # a list of words
        install HDFS $wanted
    fi
    [ -e "$venv/hdfs/.made" ] || [ ! -e /usr/share/java/jersey1-servlet.jar ] && return
    echo "fetching HDFS for its tests (220 MB, of which 38 MB are kept) …" >&2
    "$venv/bin/python" tools/hadoop.py "$venv/hdfs" || echo "HDFS could not be fetched; its tests are skipped" >&2
}

faketime() {
    ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || install "libfaketime" libfaketime
}

# Clients of other systems from npm, each pinned by hash in tools/npm: nothing of theirs is run to install them.
clients() {
    venv=${VENV:-.venv}
    if ! command -v npm >/dev/null; then
        wanted="nodejs npm"
        # shellcheck disable=SC2086 # a list of words
        install "clients from npm" $wanted
    fi
    command -v npm >/dev/null && [ -d "$venv" ] || return
    cmp -s tools/npm/package-lock.json "$venv/npm/package-lock.json" && [ -e "$venv/npm/.made" ] && return
    echo "fetching clients from npm for their tests …" >&2
    mkdir -p "$venv/npm" && cp tools/npm/package.json tools/npm/package-lock.json "$venv/npm/" &&
        (cd "$venv/npm" && npm ci --ignore-scripts --no-audit --no-fund >/dev/null 2>&1 && touch .made) ||
        echo "clients from npm could not be fetched; their tests are skipped" >&2
}

# newuidmap, by which a server of a plain account gives its tasks accounts of their own.
ids() {
    command -v newuidmap >/dev/null || install uidmap uidmap
}

shells() {
    for shell in zsh fish; do
        command -v $shell >/dev/null || install $shell $shell
    done
}

browser() {
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
        install "a browser" chromium
}

postgres
slurm
hdfs
faketime
clients
ids
shells
browser
