#!/bin/sh
# The engines that tests use: Debian's PostgreSQL, installed where it is missing and root may. Harmless everywhere else: the
# tests that need an engine are skipped, and say so.
for found in /usr/lib/postgresql/*/bin/postgres; do
    [ -x "$found" ] && exit 0
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "PostgreSQL is not installed; its tests are skipped (apt-get install postgresql)" >&2
    exit 0
fi
echo "installing PostgreSQL for its tests …" >&2
# Debian would start one for the whole machine; tests start their own, and end it.
none=/etc/postgresql-common/createcluster.d/none-for-tests.conf
mkdir -p "${none%/*}" && echo 'create_main_cluster = false' >"$none"
export DEBIAN_FRONTEND=noninteractive
{ apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; } >/dev/null 2>&1 ||
    echo "PostgreSQL could not be installed; its tests are skipped" >&2
rm -f "$none"
