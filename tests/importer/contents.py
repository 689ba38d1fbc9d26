"""The rows that an import writes."""

from typing import Any

from projects import models as m

TABLES = (
    m.Flag,
    m.FlagEnvironment,
    m.Strategy,
    m.FlagTag,
    m.FlagLink,
    m.Dependency,
    m.ContextField,
    m.TagType,
    m.Segment,
)


def contents() -> dict[str, list[Any]]:
    return {table.__name__: list(table.objects.order_by("pk").values()) for table in TABLES}
