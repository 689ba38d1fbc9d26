"""Creates integrations of another server. The app of integrations, which is above this one, provides the function."""

from collections.abc import Mapping
from typing import Any

from flagadmin.core.errors import Conflict
from flagadmin.core.hook import Hook


def _refuse(values: Mapping[str, Any]) -> list[str]:
    raise Conflict("This server has no integrations.")


create_switched_off = Hook("importer.moving.writing.created_integration.create_switched_off", _refuse)
"""Creates a disabled integration with the members ``provider``, ``description``, ``parameters``, ``events``,
``projects`` and ``environments``.

Returns the events that do not exist here. Raises ValidationError.
"""
