"""Turns flags as code into the bodies of imports: one for each environment of each project."""

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from flagadmin.core.errors import Problem
from importer.as_code.documents import keep_spelling, read_states
from importer.as_code.schemas import FlagFile
from importer.body.schemas import Body
from projects.export import export_flags

Placed = tuple[int, FlagFile]
"""A flag with its place in the list of flags."""
_PLACE = re.compile(r"(data\.\w+\[\d+\])(.*)", re.DOTALL)
_PARENT = re.compile(r"\.dependencies(?=\[)")


@dataclass
class Part:
    """The import of what flags have in one environment. ``paths``: where its entries come from."""

    body: Body
    paths: dict[str, str] = field(default_factory=dict)

    def translate_problem(self, problem: Problem) -> Problem:
        """Gives the problem its path in the directory instead of that in the import."""
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
    """Splits the flags by the environment in which they are imported, and says whether with their settings there.

    A flag that has nothing in an environment that is not ``held`` is imported once all the same: it has a description.
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

    Flags that come without what they have there keep it. Without ``parents``, so do those of flags that exist.
    """

    def __init__(self, project: str, environment: str, flags: list[tuple[Placed, bool]], *, parents: bool):
        self.parents = parents
        names = [flag["name"] for (_, flag), _ in flags]
        stored = export_flags(environment, names=names) if names else {}
        self.known = {feature["name"] for feature in stored.get("features", ())}
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
        for (index, flag), with_state in flags:
            self._add(flag, f"flags[{index}].flag", environment, with_state)
        self.part = Part(Body(project, environment, self.data), self.paths)  # type: ignore[arg-type]

    def _put(self, key: str, entry: Any, path: str) -> None:
        self.paths[f"data.{key}[{len(self.data[key])}]"] = path
        self.data[key].append(entry)

    def _add(self, flag: FlagFile, path: str, environment: str, with_state: bool) -> None:
        name = flag["name"]
        metadata = {
            key: flag[key] for key in ("type", "description", "stale", "impressionData") if key in flag
        }
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

    def _pair_strategies(
        self, name: str, strategies: list[Mapping[str, Any]], path: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """Pairs strategies with the stored places if there are as many: these say nothing but the order."""
        stored = self.strategies.get(name, [])
        orders = [strategy["sortOrder"] for strategy in stored]
        if len(orders) != len(strategies):
            orders = list(range(len(strategies)))
        known = [constraint for strategy in stored for constraint in strategy["constraints"]]
        for number, (strategy, order) in enumerate(zip(strategies, orders, strict=True)):
            strategy_path = f"{path}.strategies[{number}]"
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
