-- On the primary, when the standby runs: from now on, a commit waits for both. The name is in standby.sh.
ALTER SYSTEM SET synchronous_standby_names = 'flagadmin_standby';
SELECT pg_reload_conf();
