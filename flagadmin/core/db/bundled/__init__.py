"""The bundled PostgreSQL: a Django database backend, and modules that start and stop the server.

`ENGINE = "flagadmin.core.db.bundled"` makes Django start the server before its first connection. Programs that
need the server without Django use `flagadmin.core.db.bundled.server`.
"""
