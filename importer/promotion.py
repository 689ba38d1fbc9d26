"""Promotes flags: plans their settings in one environment into another, as an import of just these parts."""

from dataclasses import dataclass
from typing import Any

import orjson

from flagadmin.core.errors import Problem, check_problems, choices
from importer.body.schemas import Body
from projects.export import export_flags
from projects.models import ProjectEnvironment

STRATEGIES, VARIANTS, ENABLED = "strategies", "variants", "enabled"
PARTS = (STRATEGIES, VARIANTS, ENABLED)
"""The parts that can be copied: the strategies and variants of the environment, and whether the flag is on."""
DEFAULT_PARTS = frozenset({STRATEGIES, VARIANTS})
NEVER_SET = {VARIANTS: [], ENABLED: False}
"""The initial state of a flag in an environment."""
MAX_FLAGS = 10_000
BYTES_OF_A_FLAG = 800
"""The approximate size of a flag in an import, to decide whether another process plans it."""


@dataclass(frozen=True, slots=True)
class Promotion:
    """A copy of ``parts`` of flags from environment ``source`` to ``target``."""

    project: str
    source: str
    target: str
    flags: tuple[str, ...]
    parts: frozenset[str] = DEFAULT_PARTS

    @property
    def size(self) -> int:
        return BYTES_OF_A_FLAG * len(self.flags)

    def dump(self) -> bytes:
        return orjson.dumps({"source": self.source, "flags": self.flags, "parts": sorted(self.parts)})

    @classmethod
    def load(cls, text: bytes, *, project: str, target: str) -> "Promotion":
        stored = orjson.loads(text)
        parts = frozenset(stored["parts"])
        return cls(project, stored["source"], target, tuple(stored["flags"]), parts)


def read_promotion(promotion: Promotion) -> Body:
    """The body of an equivalent import into the target, from the present state.

    If the caller may not see the project, the plan has the error. Raises ValidationError for an environment that the
    project does not use, or one that is promoted to itself.
    """
    used = ProjectEnvironment.objects.filter(project=promotion.project)
    names = list(used.order_by("environment_id").values_list("environment_id", flat=True))
    _check_environments(promotion, names)
    exported = export_flags(promotion.source, names=promotion.flags, readable=[promotion.project])
    states = {state["featureName"]: state for state in exported["featureEnvironments"]}
    data: dict[str, Any] = {
        "features": [{"name": name} for name in promotion.flags],
        "featureStrategies": [],
        "featureEnvironments": [
            {"name": name, "featureName": name, **_read_state(states.get(name, NEVER_SET), promotion)}
            for name in promotion.flags
        ],
        "tagTypes": [],
    }
    if STRATEGIES in promotion.parts:
        data["segments"] = exported["segments"]
        data["featureStrategies"] = exported["featureStrategies"]
    return Body(promotion.project, promotion.target, data, promotion.parts)  # type: ignore[arg-type]


def _check_environments(promotion: Promotion, names: list[str]) -> None:
    problems = [
        Problem(path, f"project {promotion.project} does not use {name[:100]}. Available: {choices(names)}")
        for path, name in (("from", promotion.source), ("to", promotion.target))
        if names and name not in names
    ]
    if not promotion.flags:
        problems.append(Problem("features", "must name at least one flag"))
    if promotion.source == promotion.target:
        problems.append(Problem("to", "must be another environment than from"))
    check_problems(problems)


def _read_state(state: dict[str, Any], promotion: Promotion) -> dict[str, Any]:
    return {key: state[key] for key in NEVER_SET if key in promotion.parts}
