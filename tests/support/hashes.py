"""Where identifiers fall, as Yggdrasil has it: asked by flags for every percentage and by a thousand variants."""

from collections.abc import Iterator
from typing import Any

from tests.support.cases import Case, sdk_results


def sdk_places(group: str, identifier: str) -> tuple[int, int]:
    """The bucket of a rollout, from 1 to 100, and the place among variants that weigh 1000, from 1."""
    context = {"userId": identifier}
    rollouts = [Case(str(percent), context, None, None) for percent in range(1, 101)]
    *enabled, (_, variant) = sdk_results(
        {"version": 2, "features": list(_features(group)), "segments": []},
        [*rollouts, Case("variants", context, None, None)],
    )
    return 101 - sum(on for on, _ in enabled), int(variant)


def _features(group: str) -> Iterator[dict[str, Any]]:
    for percent in range(1, 101):
        yield _feature(str(percent), group, percent, [])
    yield _feature("variants", group, 100, [{"name": str(n), "weight": 1} for n in range(1, 1001)])


def _feature(name: str, group: str, percent: int, variants: list[Any]) -> dict[str, Any]:
    parameters = {"rollout": str(percent), "stickiness": "userId", "groupId": group}
    strategy = {"name": "flexibleRollout", "parameters": parameters, "variants": variants}
    return {"name": name, "type": "release", "enabled": True, "strategies": [strategy]}
