-- On the standby, when the primary is lost for certain: it must not come back as a second primary.
ALTER SYSTEM SET synchronous_standby_names = '';
SELECT pg_reload_conf();
SELECT pg_promote();
