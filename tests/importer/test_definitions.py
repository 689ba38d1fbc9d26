"""The flag definitions that a plan would lead to, as evaluated by the playground before the import."""

from typing import Any

import pytest

from importer.apply.execute import import_body
from importer.body.schemas import read_body
from importer.effects import plan_states
from importer.plan.build import plan_import
from projects.definitions import Definitions, read_definitions
from projects.models import Flag
from tests.support.import_bodies import body, strategy, switch

pytestmark = pytest.mark.django_db


def without_ids(definitions: Definitions) -> Any:
    names = {identifier: segment["name"] for identifier, segment in definitions.segments.items()}
    for flag in definitions.flags:
        for flag_strategy in flag["strategies"]:
            flag_strategy["id"] = ""
            flag_strategy["segments"] = [names[segment] for segment in flag_strategy["segments"]]
    return sorted(definitions.flags, key=lambda flag: flag["name"]), sorted(names.values())


def test_is_what_the_import_then_makes(callers: Any) -> None:
    caller = callers("admin")
    import_body(
        read_body(body("kept", "changed", "archived", featureEnvironments=[switch("kept")])), caller=caller
    )
    document = body(
        "changed",
        "new",
        featureStrategies=[strategy("changed"), strategy("new", segments=[5], title="t")],
        featureEnvironments=[switch("new")],
        segments=[{"id": 5, "name": "vip", "constraints": []}],
        dependencies=[{"feature": "new", "dependencies": [{"feature": "kept"}]}],
    )
    document["data"]["features"].append({"name": "archived", "archived": True})
    changes = read_body(document)
    plan = plan_import(changes, caller=caller)

    _, after = plan_states(plan).pair.states
    planned = without_ids(after.apply(read_definitions(["shop"], "development"), plan.flags))

    assert not Flag.objects.filter(name="new").exists()
    import_body(changes, caller=caller)
    assert planned == without_ids(read_definitions(["shop"], "development"))
