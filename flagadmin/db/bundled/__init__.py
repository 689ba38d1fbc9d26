"""The bundled PostgreSQL: a Django database backend, and modules that start and stop the server.

`ENGINE = "flagadmin.db.bundled"` makes Django start the server before its first connection. Programs that
need the server without Django use `flagadmin.db.bundled.server`.
"""
