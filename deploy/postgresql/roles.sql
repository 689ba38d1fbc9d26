-- Once, on the primary: psql --set application_password=… --set replicator_password=… --file roles.sql
CREATE ROLE flagadmin LOGIN PASSWORD :'application_password';
CREATE DATABASE flagadmin OWNER flagadmin;
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replicator_password';
-- What pg_rewind reads.
GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_stat_file(text, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean) TO replicator;
-- What rejoin.sh and `flagadmin standby watch` do: they see whether a standby follows, and say that commits wait for it.
GRANT pg_checkpoint, pg_read_all_stats TO replicator;
GRANT ALTER SYSTEM ON PARAMETER synchronous_standby_names TO replicator;
GRANT EXECUTE ON FUNCTION pg_reload_conf() TO replicator;
