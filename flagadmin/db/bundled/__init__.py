"""The bundled PostgreSQL: a database backend and the supervisor that starts and stops its server.

`ENGINE = "flagadmin.db.bundled"` makes Django start the server before its first connection. Programs that
need the server without Django use `flagadmin.db.bundled.server`.
"""
