#!/bin/sh
# Makes the former primary, whose PostgreSQL is stopped, the synchronous standby of the new one: rejoin.sh HOST [PORT]
# Commits of the new primary wait for it only once it follows, so none is held up meanwhile.
# Run it beside standby.sh, as the account of PostgreSQL, with its programs in PATH, the password of "replicator" in
# ~/.pgpass, and
#   PGDATA    the data directory
#   PGCONFIG  the path of postgresql.conf, if it is elsewhere (Debian: /etc/postgresql/17/main/postgresql.conf)
#   START     the command that starts it (Debian: "pg_ctlcluster 17 main start"); otherwise pg_ctl does
set -eu
primary="host=$1 port=${2:-5432} user=replicator dbname=postgres"
standby=$(dirname "$0")/standby.sh
folder=$PGDATA

ask() {
    psql --no-psqlrc --quiet --no-align --tuples-only --set=ON_ERROR_STOP=1 --dbname="$primary" "$@"
}

is_so() {
    [ "$(ask --command="SELECT $1")" = t ]
}

wait_until() {
    echo "Waiting until $1."
    tries=0
    until is_so "$2"; do
        tries=$((tries + 1))
        if [ "$tries" -gt "${TRIES:-600}" ]; then
            echo "It does not come. The log of this PostgreSQL says why; commits do not wait for it." >&2
            exit 1
        fi
        sleep 1
    done
}

if pg_ctl status --pgdata="$folder" >/dev/null 2>&1; then
    echo "Stop the PostgreSQL of this machine first." >&2
    exit 1
fi
if is_so "pg_is_in_recovery()"; then
    echo "$1 is a standby itself: promote it first." >&2
    exit 1
fi

# Directly after a promotion, the control file of the new primary has the old timeline: pg_rewind would do nothing.
ask --command=CHECKPOINT

if ! "$standby" "$@"; then
    # A failed pg_rewind leaves nothing that could be started.
    kept=$folder.$(date +%Y%m%dT%H%M%S)
    echo "It cannot be rewound. A copy of the new primary takes its place; the old files stay in $kept."
    mv "$folder" "$kept"
    "$standby" "$@"
fi

${START:-pg_ctl start --wait --silent --pgdata="$folder" --log="$folder.log"}
wait_until "it follows" "EXISTS (SELECT FROM pg_stat_replication
    WHERE application_name = 'flagadmin_standby' AND state = 'streaming')"
ask --command="ALTER SYSTEM SET synchronous_standby_names = 'flagadmin_standby'" --command="SELECT pg_reload_conf()" >/dev/null
wait_until "commits wait for it" "EXISTS (SELECT FROM pg_stat_replication
    WHERE application_name = 'flagadmin_standby' AND sync_state = 'sync')"
echo "It is the synchronous standby of $1."
