"""Looks up a row by its fields, or raises NotFound (404)."""

from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Manager, Model, QuerySet

from flagadmin.core.errors import NotFound

Row = TypeVar("Row", bound=Model)


def get_or_404(rows: Manager[Row] | QuerySet[Row], message: str, **lookups: Any) -> Row:
    """The first row with these values. Raises NotFound with the message: Django's own shortcut has no place for one."""
    try:
        row = rows.filter(**lookups).first()
    except ValidationError:  # a value that no row can have: no UUID, for example
        row = None
    if row is None:
        raise NotFound(message)
    return row
