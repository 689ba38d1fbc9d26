"""LaunchDarkly's flags: what its REST API lists, with the segments, or the file of an SDK's data source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, NotRequired, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from flagadmin.core import errors
from flagadmin.core.errors import choices
from importer.converting.conditions import All, Unsupported, one_of
from importer.converting.files import validate
from importer.converting.flags import Flag, Outcome, Parent, Result, Rule, Share, Source, Split
from importer.converting.launchdarkly_clauses import USER_KIND, Clause, Clauses, Segment
from importer.converting.naming import make_name
from importer.converting.rollouts import pick_share

NAME, TITLE = "launchdarkly", "LaunchDarkly"
TOTAL = 100_000  # of the weights of a rollout
HASH_DIGITS, HASH_SIZE = 15, 0xFFFFFFFFFFFFFFF


class Target(TypedDict):
    values: list[str]
    variation: int
    contextKind: NotRequired[str | None]


class WeightedVariation(TypedDict):
    variation: int
    weight: float


class Rollout(TypedDict):
    variations: list[WeightedVariation]
    kind: NotRequired[str | None]
    bucketBy: NotRequired[str | None]
    contextKind: NotRequired[str | None]
    seed: NotRequired[int | None]


class Served(TypedDict):
    variation: NotRequired[int | None]
    rollout: NotRequired[Rollout | None]


class TargetingRule(Served):
    clauses: list[Clause]
    description: NotRequired[str | None]


class Prerequisite(TypedDict):
    key: str
    variation: int


class Targeting(TypedDict):
    """A flag in one environment."""

    on: bool
    fallthrough: NotRequired[Served]
    offVariation: NotRequired[int | None]
    targets: NotRequired[list[Target] | None]
    contextTargets: NotRequired[list[Target] | None]
    rules: NotRequired[list[TargetingRule] | None]
    prerequisites: NotRequired[list[Prerequisite] | None]
    salt: NotRequired[str | None]


class Variation(TypedDict):
    value: Any
    name: NotRequired[str | None]


class ListedFlag(TypedDict):
    key: str
    name: NotRequired[str | None]
    description: NotRequired[str | None]
    archived: NotRequired[bool]
    tags: NotRequired[list[str]]
    variations: list[Variation]
    environments: dict[str, Targeting]


class ListedSegment(Segment):
    key: Required[str]


class SdkFlag(Targeting):
    key: NotRequired[str]
    variations: list[Any]


class SdkFile(TypedDict):
    flags: NotRequired[dict[str, SdkFlag]]
    flagValues: NotRequired[dict[str, Any]]
    segments: NotRequired[dict[str, Segment]]


_LISTED = TypeAdapter(list[ListedFlag])
_SEGMENTS = TypeAdapter(list[ListedSegment])
_FILE = TypeAdapter(SdkFile)


def recognize(document: Any) -> bool:
    if not isinstance(document, dict):
        return False
    if _flag_list(document) is not None:
        return True
    flags = document.get("flags")
    first = next(iter(flags.values()), None) if isinstance(flags, dict) else None
    is_flag = isinstance(first, dict) and "variations" in first and "fallthrough" in first
    return is_flag or isinstance(document.get("flagValues"), dict)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError, also for an environment that the flags do not have."""
    listed = _flag_list(document) if isinstance(document, dict) else None
    return _read_file(document) if listed is None else _read_list(document, listed, environment)


def _flag_list(document: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """The flags as the REST API lists them, with their path."""
    for path, flags in (("items", document), ("flags.items", document.get("flags"))):
        items = flags.get("items") if isinstance(flags, Mapping) else None
        if isinstance(items, list) and (
            not items or (isinstance(items[0], dict) and "environments" in items[0])
        ):
            return path, items
    return None


def _read_list(document: Mapping[str, Any], listed: tuple[str, list[Any]], environment: str) -> Source:
    path, items = listed
    flags = validate(_LISTED, items, path)
    environment = _choose_environment(flags, environment)
    segments = document.get("segments")
    if isinstance(segments, Mapping):
        segments = segments.get("items")
    clauses = Clauses({each["key"]: each for each in validate(_SEGMENTS, segments or [], "segments")})
    reader = _Reader(clauses, {flag["key"]: flag["variations"] for flag in flags})
    read_flags = []
    for index, listed_flag in enumerate(flags):
        targeting = listed_flag["environments"].get(environment)
        flag = Flag(listed_flag["key"], f"{path}[{index}]", tags=_tags(listed_flag))
        flag.description = listed_flag.get("description") or listed_flag.get("name") or ""
        flag.archived = listed_flag.get("archived", False)
        if targeting is None:
            flag.lacks("environment", f"It is not in the environment {environment}.")
        reader.add(flag, targeting or {"on": False})
        read_flags.append(flag)
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, environment, clauses.notes)


def _tags(flag: ListedFlag) -> list[str]:
    """Tags here have 2 to 50 characters."""
    return [tag for tag in dict.fromkeys(flag.get("tags", ())) if 2 <= len(tag) <= 50]


def _choose_environment(flags: Sequence[ListedFlag], environment: str) -> str:
    known = dict.fromkeys(name for flag in flags for name in flag["environments"])
    if environment in known or not known:
        return environment
    if environment:
        message = f"{environment} is not an environment of the file. Available: {choices(known)}"
        raise errors.ValidationError.at("environment", message)
    if len(known) > 1:
        raise errors.ValidationError.at("environment", f"choose one of {choices(known)}")
    return next(iter(known))


def _read_file(document: Any) -> Source:
    parts = validate(_FILE, document)
    if not parts.keys() & {"flags", "flagValues"}:
        raise errors.ValidationError.at("flags", "is required, unless there are items or flagValues")
    flags, values = parts.get("flags", {}), parts.get("flagValues", {})
    clauses = Clauses(parts.get("segments", {}))
    variations: dict[str, list[Variation]] = {
        key: [{"value": value} for value in flag["variations"]] for key, flag in flags.items()
    }
    reader = _Reader(clauses, variations | {key: [{"value": value}] for key, value in values.items()})
    read_flags = []
    for key, flag in flags.items():
        read_flags.append(Flag(key, f"flags.{key}"))
        reader.add(read_flags[-1], flag)
    for key in values:
        read_flags.append(Flag(key, f"flagValues.{key}"))
        reader.add(read_flags[-1], {"on": True, "fallthrough": {"variation": 0}})
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, "", clauses.notes)


class _Reader:
    """Reads the flags of a file, which can name each other."""

    def __init__(self, clauses: Clauses, variations: Mapping[str, Sequence[Variation]]) -> None:
        self.clauses = clauses
        self.outcomes = {key: _outcomes(listed) for key, listed in variations.items()}
        self.values = {key: _values(listed) for key, listed in variations.items()}
        self.targetings: dict[str, Targeting] = {}

    def add(self, flag: Flag, targeting: Targeting) -> None:
        self.targetings[flag.name] = targeting
        flag.values, flag.enabled = self.values[flag.name], targeting["on"]

    def finish(self, flags: list[Flag]) -> list[Flag]:
        for flag in flags:
            try:
                _FlagReader(self, flag).read()
            except Unsupported as error:
                flag.lacks("targeting", str(error))
        return flags

    def parent(self, prerequisite: Prerequisite) -> Parent:
        key = prerequisite["key"]
        if key not in self.outcomes:
            raise Unsupported(f"Its prerequisite {key} is not in the file.")
        outcome = _at(self.outcomes[key], prerequisite["variation"])
        if outcome is Result.OFF and not self.targetings[key]["on"]:
            raise Unsupported(
                f"Its prerequisite {key} is switched off, which a parent that must be off would allow."
            )
        is_named = isinstance(outcome, str)
        return Parent(key, outcome is not Result.OFF, (str(outcome),) if is_named else ())


def _outcomes(variations: Sequence[Variation]) -> list[Outcome]:
    names = list(_values(variations))
    if not names:
        return [Result.ON if variation["value"] else Result.OFF for variation in variations]
    return list(names)


def _values(variations: Sequence[Variation]) -> dict[str, Any]:
    """The values by name, each with a name of its own; none if all are boolean."""
    if all(isinstance(variation["value"], bool) for variation in variations):
        return {}
    values: dict[str, Any] = {}
    for variation in variations:
        name = variation.get("name")
        values[name if name and name not in values else make_name(variation["value"], values)] = variation[
            "value"
        ]
    return values


def _at(outcomes: Sequence[Outcome], index: int) -> Outcome:
    if not 0 <= index < len(outcomes):
        raise Unsupported(f"It serves variation {index}, but has only {len(outcomes)}.")
    return outcomes[index]


class _FlagReader:
    def __init__(self, reader: _Reader, flag: Flag) -> None:
        self.reader, self.flag = reader, flag
        self.targeting = reader.targetings[flag.name]
        self.outcomes = reader.outcomes[flag.name]

    def read(self) -> None:
        flag, targeting = self.flag, self.targeting
        self._read_off()
        flag.parents = [self.reader.parent(each) for each in targeting.get("prerequisites") or ()]
        flag.rules = self._targets()
        for number, rule in enumerate(targeting.get("rules") or (), 1):
            when = All(tuple(map(self.reader.clauses.condition, rule["clauses"])))
            title = rule.get("description") or f"Rule {number}"
            flag.rules.append(Rule(self._served(rule), when, title))
        flag.rules.append(Rule(self._served(targeting.get("fallthrough") or {}), title="Default"))

    def _read_off(self) -> None:
        """What it gives while it is off. A flag here is nothing then, and applications take their own default."""
        index = self.targeting.get("offVariation")
        outcome = Result.OFF if index is None else _at(self.outcomes, index)
        if outcome is Result.OFF:
            return
        given = "true" if outcome is Result.ON else outcome
        if not self.targeting["on"]:
            self.flag.differs(
                "off", f"It is off and gives {given}; here, applications get their own default."
            )
        elif self.targeting.get("prerequisites"):
            sentence = f"If a prerequisite fails, it gives {given}; here, applications get their own default."
            self.flag.differs("off", sentence)

    def _targets(self) -> list[Rule]:
        """Single users. If there are contexts of other kinds, their list says the order."""
        users = self.targeting.get("targets") or []
        contexts = self.targeting.get("contextTargets") or []
        by_variation = {target["variation"]: target["values"] for target in users}
        rules = []
        for target in contexts or users:
            kind = target.get("contextKind") or USER_KIND
            values = target["values"]
            if contexts and kind == USER_KIND and not values:
                values = by_variation.pop(target["variation"], [])
            rules.append((kind, target["variation"], values))
        if contexts and users and all(kind != USER_KIND for kind, *_ in rules):
            rules = [(USER_KIND, target["variation"], target["values"]) for target in users] + rules
        return [
            Rule(
                _at(self.outcomes, variation),
                one_of(self.reader.clauses.field(kind, "key"), values),
                "Targets",
            )
            for kind, variation, values in rules
            if values
        ]

    def _served(self, served: Served) -> Outcome | Split:
        rollout, variation = served.get("rollout"), served.get("variation")
        if variation is not None:
            return _at(self.outcomes, variation)
        if not rollout or not rollout["variations"]:
            raise Unsupported("A rule serves neither a variation nor a rollout.")
        return self._split(rollout)

    def _split(self, rollout: Rollout) -> Split:
        shares = tuple(
            Share(_at(self.outcomes, each["variation"]), each["weight"]) for each in rollout["variations"]
        )
        is_experiment = rollout.get("kind") == "experiment"
        attribute = "key" if is_experiment else rollout.get("bucketBy") or "key"
        seed, salt = rollout.get("seed"), self.targeting.get("salt") or ""
        prefix = f"{self.flag.name}.{salt}" if seed is None else str(seed)

        def pick(identifier: str) -> Outcome:
            return pick_share(shares, TOTAL * _bucket(f"{prefix}.{identifier}"))

        return Split(
            shares, self.reader.clauses.field(rollout.get("contextKind") or USER_KIND, attribute), pick
        )


def _bucket(text: str) -> float:
    """A number from 0 to 1."""
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
    return int(digest[:HASH_DIGITS], 16) / HASH_SIZE
