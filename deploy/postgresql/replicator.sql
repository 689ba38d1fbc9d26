-- Once, on the primary of a pair without Patroni: psql --set replicator_password=… --file replicator.sql
CREATE ROLE replicator LOGIN REPLICATION PASSWORD :'replicator_password';
-- What pg_rewind reads.
GRANT EXECUTE ON FUNCTION pg_ls_dir(text, boolean, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_stat_file(text, boolean) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text) TO replicator;
GRANT EXECUTE ON FUNCTION pg_read_binary_file(text, bigint, bigint, boolean) TO replicator;
