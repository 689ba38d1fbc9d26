"""Imports the SCIM modules before the first request, in each worker of an installation that uses SCIM."""

import asyncio

from django.db import OperationalError, connections

from groups.scim.actions import load_settings


async def preload_service() -> None:
    """A task of the event loop. The import takes a second, which would delay the first request."""
    await asyncio.to_thread(_import_if_used)


def _import_if_used() -> None:
    try:
        is_used = load_settings().is_enabled
    except OperationalError:  # then the first request imports it
        return
    finally:
        connections.close_all()
    if is_used:
        from groups.scim import service  # noqa: F401
