#!/bin/sh
# Makes the PostgreSQL of this machine, which is stopped, a standby of another: standby.sh HOST [PORT]
# An empty data directory gets a copy; that of a former primary, only what differs (pg_rewind).
# Run it as the account of PostgreSQL, with its programs in PATH, the password of "replicator" in ~/.pgpass, and
#   PGDATA    the data directory
#   PGCONFIG  the path of postgresql.conf, if it is elsewhere (Debian: /etc/postgresql/17/main/postgresql.conf)
set -eu
primary="host=$1 port=${2:-5432} user=replicator dbname=postgres application_name=flagadmin_standby"

if [ -e "$PGDATA/PG_VERSION" ]; then
    pg_rewind --target-pgdata="$PGDATA" --source-server="$primary" --write-recovery-conf \
        ${PGCONFIG:+--config-file="$PGCONFIG"}
else
    pg_basebackup --pgdata="$PGDATA" --dbname="$primary" --write-recovery-conf --checkpoint=fast
fi
