"""Sends requests to the playground's API and creates flags for it to evaluate."""

from collections.abc import Iterable, Mapping
from typing import Any

from projects.models import Flag
from tests.support.flags import make_flag

URL = "/api/admin/playground"


def live_flag(
    name: str,
    project: str = "shop",
    *,
    enabled: bool = True,
    strategies: Iterable[Mapping[str, Any]] = ({"name": "default"},),
    variants: Iterable[Any] = (),
) -> Flag:
    """Creates a flag that is on for everyone in production."""
    return make_flag(
        name, project, environment="production", enabled=enabled, strategies=strategies, variants=variants
    )


def ask(api: Mapping[str, Any], who: str = "viewer", **members: Any) -> Any:
    """Evaluates for user 42 in production, unless ``members`` override these parts of the body."""
    return api[who].post(URL, {"environment": "production", "context": {"userId": "42"}} | members)
