"""Errors of the bundled PostgreSQL server."""


class EmbeddedServerError(Exception):
    """The bundled PostgreSQL cannot be prepared, started or reached; the message says why."""
