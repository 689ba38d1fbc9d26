"""Leaves chosen objects out of a move, such as unsupported ones, together with the flags that need them."""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from flagadmin.core.errors import Problem, check_problems, choices
from importer.moving.proving.answers import Flags
from importer.moving.reading.installation import Installation, SourceProject
from importer.moving.report import Kind, Line
from importer.plan.entries import FLAG_KEYS, name_flag
from projects.models import Flag, Segment, StrategyType, TagType

FLAG = "flag"
LISTS = {
    "project": "projects",
    "environment": "environments",
    "segment": "segments",
    "context-field": "fields",
    "strategy-type": "strategy_types",
    "tag-type": "tag_types",
}
"""The kinds of objects that can be left out besides flags, and their places in an installation."""


class Choice(NamedTuple):
    kind: str
    name: str

    def __str__(self) -> str:
        return self.name if self.kind == FLAG and ":" not in self.name else f"{self.kind}:{self.name}"

    @property
    def subject(self) -> str:
        return f"{self.kind.replace('-', ' ')} {self.name}"


def read_choices(texts: Iterable[str], path: str) -> list[Choice]:
    """``NAME`` of a flag, ``segment:NAME`` and so on. Raises ValidationError with problems at the path."""
    parts = [text.partition(":") if ":" in text else (FLAG, ":", text) for text in texts]
    kinds = (FLAG, *LISTS)
    problems = [
        Problem(path, f"{kind}:{name} must be a flag's name, or a kind and a name: {choices(kinds)}")
        for kind, _, name in parts
        if kind not in kinds or not name
    ]
    check_problems(problems)
    return list(dict.fromkeys(Choice(kind, name) for kind, _, name in parts))


def leave_out(installation: Installation, chosen: Collection[Choice]) -> None:
    """Removes the choices from the installation, with a line for each. Existing objects here stay unchanged."""
    for choice in chosen:
        if not _drop(installation, choice):
            installation.left.append(Line(Kind.NOTE, choice.subject, "is to be left out, and is not there"))
        elif choice.kind != FLAG:
            installation.left.append(Line(Kind.LEAVE, choice.subject, "as you chose"))
    if chosen:
        missing = MissingParts(chosen)
        for project in installation.projects:
            flags = missing.find_flags(project)
            _drop_flags(project, flags)
            installation.left += [
                Line(Kind.LEAVE, f"flag {name}", reason, project.id, name) for name, reason in flags.items()
            ]


# Other than flags ------------------------------------------------------------------------------------------


def _drop(installation: Installation, choice: Choice) -> bool:
    """Drops the choice if it exists there, and returns whether it does. Flags are dropped later, with their
    dependents.
    """
    kind, name = choice
    projects = installation.projects
    if kind == FLAG:
        return any(flag.name == name for project in projects for flag in project.listed)
    owners = [installation, *(projects if kind == "context-field" else ())]
    dropped = [_drop_named(owner, LISTS[kind], name) for owner in owners]
    if kind == "tag-type":
        installation.tags = [tag for tag in installation.tags if tag.type != name]
    # Flags keep tags of a type that already exists here.
    if kind == "environment" or (kind == "tag-type" and not TagType.objects.filter(name=name).exists()):
        dropped += [_drop_of_project(project, choice) for project in projects]
    return any(dropped)


def _drop_named(owner: Any, attribute: str, name: str) -> bool:
    before = getattr(owner, attribute)
    after = [each for each in before if (each.id if attribute == "projects" else each.name) != name]
    setattr(owner, attribute, after)
    return len(after) < len(before)


def _drop_of_project(project: SourceProject, choice: Choice) -> bool:
    if choice.kind == "environment":
        used = project.overview.environments
        project.overview.environments = [each for each in used if each.environment != choice.name]
        return project.flags.pop(choice.name, None) is not None
    for data in project.flags.values():
        data["featureTags"] = [tag for tag in data["featureTags"] if tag.get("tagType") != choice.name]
    return False


# Flags -----------------------------------------------------------------------------------------------------


class MissingParts:
    """The chosen parts that do not exist here, so that everything that needs them is left out too."""

    def __init__(self, chosen: Iterable[Choice]) -> None:
        names: dict[str, set[str]] = {kind: set() for kind in (FLAG, *LISTS)}
        for kind, name in chosen:
            names[kind].add(name)
        self.flags, self.projects, self.environments = names[FLAG], names["project"], names["environment"]
        segments, types = names["segment"], names["strategy-type"]
        self.segments = segments - {*Segment.objects.filter(name__in=segments).values_list("name", flat=True)}
        self.types = types - {*StrategyType.objects.filter(name__in=types).values_list("name", flat=True)}

    def find_flags(self, project: SourceProject) -> dict[str, str]:
        """The flags of the project to leave out, with the reasons."""
        reasons = {flag.name: "as you chose" for flag in project.listed if flag.name in self.flags}
        for data in project.flags.values():
            segments = {each.get("id"): each.get("name", "") for each in data["segments"]}
            for strategy in data["featureStrategies"]:
                used = [segments.get(key, "") for key in _read_segments(strategy)]
                if reason := self.explain(str(strategy.get("name")), used):
                    reasons.setdefault(name_flag("featureStrategies", strategy), reason)
        if reasons:
            here = Flag.objects.active().filter(project=project.id, name__in=reasons)
            _add_children(reasons, {*here.values_list("name", flat=True)}, [*_read_parents(project)])
        return reasons

    def find_among(self, there: Flags, here: Flags) -> set[str]:
        """The flags that SDKs get there but not here, or differently here."""
        reasons = {name: "" for name, flag in there.items() if self._has(flag)}
        parents = [(name, each["feature"]) for name in there for each in there[name]["dependencies"]]
        _add_children(reasons, here, parents)
        return {name for name in reasons if name in self.flags or name not in here}

    def _has(self, flag: Mapping[str, Any]) -> bool:
        return (
            flag["name"] in self.flags
            or flag["project"] in self.projects
            or any(
                self.explain(strategy["name"], [segment["name"] for segment in strategy["segments"]])
                for strategy in flag["strategies"]
            )
        )

    def has_token(self, environment: str, projects: Collection[str]) -> bool:
        """Whether nothing within the token's scope moves."""
        return environment in self.environments or (bool(projects) and {*projects} <= self.projects)

    def explain(self, strategy_type: str, segments: Iterable[str]) -> str:
        """Why a strategy needs a part that is left out; "" if it does not."""
        if strategy_type in self.types:
            return f"its strategy type {strategy_type} is left out"
        return next((f"its segment {name} is left out" for name in segments if name in self.segments), "")


def _read_parents(project: SourceProject) -> Iterator[tuple[str, str]]:
    """Children and their parents."""
    for data in project.flags.values():
        for entry in data["dependencies"]:
            parents = entry.get("dependencies")
            for parent in parents if isinstance(parents, list) else ():
                if isinstance(parent, dict):
                    yield str(entry.get("feature")), str(parent.get("feature"))


def _read_segments(strategy: Mapping[str, Any]) -> list[Any]:
    """Reads the segments' ids. Imports refuse any other values."""
    ids = strategy.get("segments")
    return [key for key in ids if isinstance(key, int)] if isinstance(ids, list) else []


def _add_children(reasons: dict[str, str], here: Container[str], parents: Sequence[tuple[str, str]]) -> None:
    """Adds the flags that depend on a flag that is left out and does not exist here."""
    count = -1
    while count != len(reasons):
        count = len(reasons)
        for child, parent in parents:
            if parent in reasons and parent not in here:
                reasons.setdefault(child, f"its parent {parent} is left out")


def _drop_flags(project: SourceProject, names: Collection[str]) -> None:
    """Drops the flags, with the segments that only they use."""
    if not names:
        return
    project.listed = [flag for flag in project.listed if flag.name not in names]
    for data in project.flags.values():
        for part in data.keys() & {*FLAG_KEYS, "featureEnvironments"}:
            data[part] = [entry for entry in data[part] if name_flag(part, entry) not in names]
        used = {key for strategy in data["featureStrategies"] for key in _read_segments(strategy)}
        data["segments"] = [segment for segment in data["segments"] if segment["id"] in used]
