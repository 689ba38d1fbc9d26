"""The Django database backend for an external PostgreSQL, which may have a synchronous standby."""
