-- On the primary, when the standby is lost: changes wait for it no longer. Nothing protects them until it is back.
ALTER SYSTEM SET synchronous_standby_names = '';
SELECT pg_reload_conf();
