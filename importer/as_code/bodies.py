"""Turns flags as code into the bodies of imports: one for each environment of each project."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices
from importer.as_code.documents import keep_spelling, read_states
from importer.as_code.schemas import FlagFile
from importer.body.schemas import Body
from projects.export import export_flags
from projects.models import FlagType
from projects.strategies.rules import percentage_problems

Placed = tuple[int, FlagFile]
"""A flag with its place in the list of flags."""
_PLACE = re.compile(r"(data\.\w+\[\d+\])(.*)", re.DOTALL)
_PARENT = re.compile(r"\.dependencies(?=\[)")


@dataclass
class Part:
    """The import of the flags' settings in one environment. ``paths``: the origins of its entries."""

    body: Body
    paths: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """Problems about which an import only warns; in a handwritten file they are errors."""

    def translate_problem(self, problem: Problem) -> Problem:
        """Replaces the problem's path in the import by the one in the directory."""
        match = _PLACE.fullmatch(problem.path)
        if match is None or match[1] not in self.paths:
            return Problem(self.paths.get(problem.path, problem.path), problem.message)
        rest = match[2]
        if match[1].startswith("data.dependencies"):
            rest = _PARENT.sub("", rest)
        elif match[1].startswith("data.segments"):
            rest = ""
        return Problem(self.paths[match[1]] + rest, problem.message)


def split_flags(
    flags: Iterable[Placed], environments: list[str], held: Container[str]
) -> dict[str, list[tuple[Placed, bool]]]:
    """Splits the flags by environment of import, each with whether its settings there are included.

    A flag without settings in an environment that is not ``held`` is still imported once, for its description.
    """
    parts: dict[str, list[tuple[Placed, bool]]] = {name: [] for name in environments}
    for placed in flags:
        named = [name for name in placed[1].get("environments", {}) if name not in held]
        for name in named:
            parts.setdefault(name, []).append((placed, True))
        if not named and environments:
            parts[environments[0]].append((placed, False))
    return {name: listed for name, listed in parts.items() if listed}


class PartBuilder:
    """Builds the import of flags into one environment of a project.

    Flags without given settings there keep theirs. Without ``parents``, existing flags keep their parents too.
    """

    def __init__(self, project: str, environment: str, flags: list[tuple[Placed, bool]], *, parents: bool):
        self.parents = parents
        names = [flag["name"] for (_, flag), _ in flags]
        stored = export_flags(environment, names=names) if names else {}
        self.types = {feature["name"]: feature["type"] for feature in stored.get("features", ())}
        self.known = self.types.keys()
        self.known_types = list(FlagType.objects.values_list("id", flat=True))
        self.stored = read_states(stored) if stored else {}
        self.strategies: dict[str, list[Any]] = {}
        for strategy in stored.get("featureStrategies", ()):
            self.strategies.setdefault(strategy["featureName"], []).append(strategy)
        self.data: dict[str, list[Any]] = {
            key: []
            for key in (
                "features",
                "featureStrategies",
                "featureEnvironments",
                "featureTags",
                "dependencies",
                "links",
                "segments",
                "tagTypes",
            )
        }
        self.segment_ids: dict[str, int] = {}
        self.paths: dict[str, str] = {}
        self.problems: list[Problem] = []
        for (index, flag), with_state in flags:
            self._add(flag, f"flags[{index}].flag", environment, with_state)
        self.part = Part(Body(project, environment, self.data), self.paths, self.problems)  # type: ignore[arg-type]

    def _put(self, key: str, entry: Any, path: str) -> None:
        self.paths[f"data.{key}[{len(self.data[key])}]"] = path
        self.data[key].append(entry)

    def _add(self, flag: FlagFile, path: str, environment: str, with_state: bool) -> None:
        name = flag["name"]
        metadata = {
            key: flag[key] for key in ("type", "description", "stale", "impressionData") if key in flag
        }
        self._check_type(name, flag.get("type", ""), path)
        self._put("features", {"name": name, **metadata}, path)
        for number, tag in enumerate(flag.get("tags", ())):
            kind, _, value = tag.partition(":")
            entry = {"featureName": name, "tagType": kind, "tagValue": value}
            self._put("featureTags", entry, f"{path}.tags[{number}]")
        self._put("links", {"feature": name, "links": flag.get("links", [])}, path)
        if self.parents or name not in self.known:
            parents = {"feature": name, "dependencies": flag.get("dependencies", [])}
            self._put("dependencies", parents, f"{path}.dependencies")
        if with_state:
            state: Mapping[str, Any] = flag["environments"][environment]
            path = f"{path}.environments.{environment}"
            self.paths.setdefault("environment", path)
            switch = {"enabled": state["enabled"], "variants": state.get("variants", [])}
            self._put("featureEnvironments", {"name": name, "featureName": name, **switch}, path)
        else:
            state = self.stored.get(name, {})
        for entry, entry_path in self._pair_strategies(name, state.get("strategies", ()), path):
            self._put("featureStrategies", entry, entry_path)

    def _check_type(self, name: str, kind: str, path: str) -> None:
        """A flag may keep its present type, whatever that is."""
        if kind and kind != self.types.get(name) and kind not in self.known_types:
            problem = f"flag type {kind} not found. Available: {choices(self.known_types)}"
            self.problems.append(Problem(f"{path}.type", problem))

    def _pair_strategies(
        self, name: str, strategies: list[Mapping[str, Any]], path: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Pairs strategies with the stored sort orders if their number is equal: files contain only the order."""
        stored = self.strategies.get(name, [])
        orders = [strategy["sortOrder"] for strategy in stored]
        if len(orders) != len(strategies):
            orders = list(range(len(strategies)))
        known = [constraint for strategy in stored for constraint in strategy["constraints"]]
        for number, (strategy, order) in enumerate(zip(strategies, orders, strict=True)):
            strategy_path = f"{path}.strategies[{number}]"
            self.problems += percentage_problems(strategy, strategy_path, stored)
            segments = [
                self._find_segment(segment, strategy_path) for segment in strategy.get("segments", ())
            ]
            constraints = keep_spelling(strategy.get("constraints", ()), known)
            entry = {
                "featureName": name,
                "sortOrder": order,
                "segments": segments,
                "constraints": constraints,
            }
            yield {**strategy, **entry}, strategy_path

    def _find_segment(self, name: str, path: str) -> int:
        if name not in self.segment_ids:
            self.segment_ids[name] = len(self.segment_ids) + 1
            self._put("segments", {"id": self.segment_ids[name], "name": name}, f"{path}.segments")
        return self.segment_ids[name]
