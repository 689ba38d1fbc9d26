"""The number of SQL statements of an import does not depend on the number of flags."""

from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from importer.apply.execute import import_body
from importer.apply.undo import undo_import
from importer.body.schemas import parse_body
from importer.plan.build import plan_import
from projects.export import export_flags

pytestmark = pytest.mark.django_db
MAX_COUNT = 60


def full_body(flags: int, rollout: str = "10") -> Any:
    """Every part, for every flag."""
    names = [f"flag-{index:04d}" for index in range(flags)]
    variants = [{"name": "a", "weight": 1000, "weightType": "variable", "stickiness": "default"}]
    return parse_body(
        orjson.dumps(
            {
                "project": "shop",
                "environment": "development",
                "data": {
                    "features": [{"name": name, "description": rollout} for name in names],
                    "featureStrategies": [
                        {
                            "name": "flexibleRollout",
                            "featureName": name,
                            "parameters": {"rollout": rollout},
                            "segments": [1],
                        }
                        for name in names
                    ],
                    "featureEnvironments": [
                        {"name": name, "enabled": rollout == "10", "variants": variants} for name in names
                    ],
                    "featureTags": [
                        {"featureName": name, "tagType": "team", "tagValue": f"t{rollout}"} for name in names
                    ],
                    "tagTypes": [{"name": "team"}],
                    "contextFields": [{"name": "tier"}],
                    "segments": [{"id": 1, "name": "vip", "constraints": []}],
                    "dependencies": [
                        {"feature": name, "dependencies": [{"feature": names[0], "enabled": rollout == "10"}]}
                        for name in names[1:]
                    ],
                    "links": [
                        {"feature": name, "links": [{"url": f"https://example.com/{rollout}"}]}
                        for name in names
                    ],
                },
            }
        )
    )


def statements(work: Any) -> int:
    with CaptureQueriesContext(connection) as queries:
        work()
    return len(queries)


@pytest.fixture(params=["first", "changing", "same", "validate", "undo", "export"])
def work(request: Any, callers: Any) -> Any:
    """Answers how many statements a kind of work needs for so many flags."""

    def count(flags: int) -> int:
        caller = callers("admin")
        if request.param == "first":
            return statements(lambda: import_body(full_body(flags), caller=caller))
        if request.param == "validate":
            return statements(lambda: plan_import(full_body(flags), caller=caller))
        import_body(full_body(flags), caller=caller)
        if request.param == "export":
            return statements(lambda: export_flags("development", project="shop"))
        if request.param == "same":
            return statements(lambda: import_body(full_body(flags), caller=caller))
        if request.param == "undo":
            run = import_body(full_body(flags, "20"), caller=caller)
            return statements(lambda: undo_import(run.id, caller=caller))
        return statements(lambda: import_body(full_body(flags, "20"), caller=caller))

    return count


def test_is_fixed(work: Any) -> None:
    from django.db import transaction

    counts = []
    for flags in (3, 300):
        with transaction.atomic():
            counts.append(work(flags))
            transaction.set_rollback(True)
    assert counts[0] == counts[1] < MAX_COUNT
