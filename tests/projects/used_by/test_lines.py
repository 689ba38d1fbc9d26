"""The lines that say what uses a segment or a context field."""

import pytest

from projects.used_by.queries import use_lines

pytestmark = pytest.mark.django_db


def use(flag: str, environment: str) -> dict[str, str]:
    return {"projectId": "shop", "featureName": flag, "environment": environment}


def test_a_flag_is_named_once_per_environment() -> None:
    uses = [
        use("cart", "production"),
        use("search", "production"),
        use("cart", "production"),
        use("cart", "dev"),
    ]
    assert [(line.name, line.where) for line in use_lines({"strategies": uses, "defaultStrategies": []})] == [
        ("cart", "2 strategies in production, project shop"),
        ("search", "in production, project shop"),
        ("cart", "in dev, project shop"),
    ]
