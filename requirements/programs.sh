#!/bin/sh
# Installs what the tests of deploy/ and those with SDKs in Node run, where that can be done without asking. Fails for nobody.
set -u

has() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

missing=
has nginx || missing="$missing nginx-light"
has pgbouncer || missing="$missing pgbouncer"
has openssl || missing="$missing openssl"
{ has promtool && has prometheus; } || missing="$missing prometheus"
has systemd-analyze || missing="$missing systemd"
has node || missing="$missing nodejs"
has npm || missing="$missing npm"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && has apt-get; then
    timeout 120 apt-get update -qq
    # In this runlevel, a package's installation starts no service.
    # shellcheck disable=SC2086
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends $missing
else
    echo "Not installed:$missing. Tests that need them will be skipped. On Debian: sudo apt-get install$missing"
fi
exit 0
