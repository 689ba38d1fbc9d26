#!/bin/sh
# Restarts or updates installations behind one nginx, one after the other, so that no request fails. Run it as root on the machine
# with nginx, with each installation's address, as the lines "server" of nginx.conf have it, and the command that restarts it:
#
#     rolling-restart.sh \
#         app1:8000 'ssh app1 sudo systemctl restart flagadmin' \
#         app2:8000 'ssh app2 sudo systemctl restart flagadmin'
#
# nginx is told that an installation is down before that stops, because nginx may not repeat a change that it has already sent.
#
# NGINX_CONF     the file with those lines (/etc/nginx/conf.d/flagadmin.conf)
# NGINX_COMMAND  the command that runs nginx (nginx)
# DRAIN_SECONDS  for requests that nginx has sent already (5)
# READY_SECONDS  for an installation to be ready, migrations included (300)
# READY_HOST     an allowed host, if FLAGADMIN_ALLOWED_HOSTS lacks 127.0.0.1
set -eu
conf=${NGINX_CONF:-/etc/nginx/conf.d/flagadmin.conf}

say() { echo "$(date +%T) $*"; }

give_up() {
    say "$*" >&2
    exit 1
}

is_good() {
    curl --silent --fail --max-time 5 --header "Host: ${READY_HOST:-127.0.0.1}" "http://$1/readyz" | grep -q '"GOOD"'
}

wait_until_good() {
    deadline=$(($(date +%s) + ${READY_SECONDS:-300}))
    until is_good "$1"; do
        [ "$(date +%s)" -lt "$deadline" ] || return 1
        sleep 0.2
    done
}

# Into the same file, so that its owner and mode stay.
edit() {
    edited=$(sed "$1" "$conf")
    printf '%s\n' "$edited" >"$conf"
    ${NGINX_COMMAND:-nginx} -s reload
}

take_out() { edit "s/^\( *server $1\( [^;]*\)\{0,1\}\);/\1 down;/"; }
put_back() { edit "s/^\( *server $1\( [^;]*\)\{0,1\}\) down;/\1;/"; }

[ $# -ge 4 ] && [ $(($# % 2)) -eq 0 ] || give_up "Usage: $0 ADDRESS COMMAND ADDRESS COMMAND..."

# With one that is down already, restarting the other would be an outage.
number=0
for word; do
    number=$((number + 1))
    [ $((number % 2)) -eq 1 ] || continue
    grep -q "^ *server $word[ ;]" "$conf" || give_up "$conf has no line \"server $word\": nothing was restarted."
    ! grep -q "^ *server $word .*down;" "$conf" || give_up "$word is down in $conf: nothing was restarted."
    is_good "$word" || give_up "$word is not ready: nothing was restarted."
done

while [ $# -gt 0 ]; do
    say "Restarting $1"
    take_out "$1"
    sleep "${DRAIN_SECONDS:-5}"
    sh -c "$2" || give_up "Restarting $1 failed. It stays down in $conf; those after it were left alone."
    wait_until_good "$1" || give_up "$1 is not ready. It stays down in $conf; those after it were left alone."
    put_back "$1"
    say "$1 is ready"
    shift 2
done
