#!/bin/sh
# The engines that tests use, of Debian's packages: installed where one is missing and root may. Harmless everywhere else: the
# tests that need an engine are skipped, and say so.
SLURM="slurm-wlm slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge slurmdbd slurm-wlm-mysql-plugin
    mariadb-server-core mariadb-client-core slurmrestd slurm-wlm-jwt-plugin"
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
    for program in munged slurmctld slurmd sbatch slurmdbd mariadbd mariadb-install-db slurmrestd; do
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

postgres
slurm
