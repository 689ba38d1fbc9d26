"""LaunchDarkly's flags: the list of its REST API, with the segments, or the file of an SDK's data source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1
from typing import Any, NotRequired, Required

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from flagadmin.core import errors
from flagadmin.core.errors import choices, clip, list_some
from importer.converting.conditions import All, Unsupported, match_any
from importer.converting.files import validate
from importer.converting.flags import Flag, Outcome, Parent, Result, Rule, Share, Source, Split, make_name
from importer.converting.launchdarkly_clauses import USER_KIND, Clause, Clauses, Segment
from importer.converting.strategies import pick_share
from projects.tag_types.rules import MAX_LENGTH, MIN_LENGTH

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


class FlagsReader:
    """Reads the flags of a file, which may refer to each other."""

    def __init__(self, clauses: Clauses, variations: Mapping[str, Sequence[Variation]]) -> None:
        self.clauses = clauses
        self.outcomes = {key: _list_outcomes(listed) for key, listed in variations.items()}
        self.values = {key: _name_values(listed) for key, listed in variations.items()}
        self.targetings: dict[str, Targeting] = {}

    def add(self, flag: Flag, targeting: Targeting) -> None:
        self.targetings.setdefault(flag.name, targeting)
        flag.values, flag.enabled = self.values[flag.name], targeting["on"]

    def finish(self, flags: list[Flag]) -> list[Flag]:
        for flag in flags:
            try:
                _FlagReader(self, flag).read()
            except Unsupported as error:
                flag.add_missing("targeting", str(error))
        return flags

    def read_parent(self, prerequisite: Prerequisite) -> Parent:
        key = prerequisite["key"]
        if key not in self.outcomes:
            raise Unsupported(f"Its prerequisite {key} is not in the file.")
        outcome = _get_outcome(self.outcomes[key], prerequisite["variation"])
        if outcome is Result.OFF and not self.targetings[key]["on"]:
            raise Unsupported(
                f"Its prerequisite {key} is switched off, which a parent that must be off would allow."
            )
        is_named = isinstance(outcome, str)
        return Parent(key, outcome is not Result.OFF, (str(outcome),) if is_named else ())


def _list_outcomes(variations: Sequence[Variation]) -> list[Outcome]:
    names = list(_name_values(variations))
    if not names:
        return [Result.ON if variation["value"] else Result.OFF for variation in variations]
    return list(names)


def _name_values(variations: Sequence[Variation]) -> dict[str, Any]:
    """The values by unique name; empty if all are boolean."""
    if all(isinstance(variation["value"], bool) for variation in variations):
        return {}
    values: dict[str, Any] = {}
    for variation in variations:
        name = variation.get("name")
        values[name if name and name not in values else make_name(variation["value"], values)] = variation[
            "value"
        ]
    return values


def _get_outcome(outcomes: Sequence[Outcome], index: int) -> Outcome:
    if not 0 <= index < len(outcomes):
        raise Unsupported(f"It serves variation {index}, but has only {len(outcomes)}.")
    return outcomes[index]


class _FlagReader:
    def __init__(self, reader: FlagsReader, flag: Flag) -> None:
        self.reader, self.flag = reader, flag
        self.targeting = reader.targetings[flag.name]
        self.outcomes = reader.outcomes[flag.name]

    def read(self) -> None:
        flag, targeting = self.flag, self.targeting
        self._read_off()
        flag.parents = [self.reader.read_parent(each) for each in targeting.get("prerequisites") or ()]
        flag.rules = self._read_targets()
        for number, rule in enumerate(targeting.get("rules") or (), 1):
            when = All(tuple(map(self.reader.clauses.read_condition, rule["clauses"])))
            title = rule.get("description") or f"Rule {number}"
            flag.rules.append(Rule(self._read_served(rule), when, title))
        flag.rules.append(Rule(self._read_served(targeting.get("fallthrough") or {}), title="Default"))

    def _read_off(self) -> None:
        """Reads the result while the flag is off. A flag here has no value then, and applications use their default."""
        index = self.targeting.get("offVariation")
        outcome = Result.OFF if index is None else _get_outcome(self.outcomes, index)
        if outcome is Result.OFF:
            return
        variation = "true" if outcome is Result.ON else outcome
        if not self.targeting["on"]:
            self.flag.add_difference(
                "off", f"It is off and gives {variation}; here, applications get their own default."
            )
        elif self.targeting.get("prerequisites"):
            sentence = (
                f"If a prerequisite fails, it gives {variation}; here, applications get their own default."
            )
            self.flag.add_difference("off", sentence)

    def _read_targets(self) -> list[Rule]:
        """Single users. If there are contexts of other kinds, their list determines the order."""
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
                _get_outcome(self.outcomes, variation),
                match_any(self.reader.clauses.find_field(kind, "key"), values),
                "Targets",
            )
            for kind, variation, values in rules
            if values
        ]

    def _read_served(self, served: Served) -> Outcome | Split:
        rollout, variation = served.get("rollout"), served.get("variation")
        if variation is not None:
            return _get_outcome(self.outcomes, variation)
        if not rollout or not rollout["variations"]:
            raise Unsupported("A rule serves neither a variation nor a rollout.")
        return self._split(rollout)

    def _split(self, rollout: Rollout) -> Outcome | Split:
        shares = tuple(
            Share(_get_outcome(self.outcomes, each["variation"]), each["weight"])
            for each in rollout["variations"]
        )
        is_experiment = rollout.get("kind") == "experiment"
        weighted = {share.outcome for share in shares if share.weight}
        if len(weighted) == 1:  # also for contexts without the attribute, which are in the first bucket
            return weighted.pop()
        attribute = "key" if is_experiment else rollout.get("bucketBy") or "key"
        seed, salt = rollout.get("seed"), self.targeting.get("salt") or ""
        prefix = f"{self.flag.name}.{salt}" if seed is None else str(seed)

        def pick(identifier: str) -> Outcome:
            return pick_share(shares, TOTAL * _compute_bucket(f"{prefix}.{identifier}"))

        return Split(
            shares, self.reader.clauses.find_field(rollout.get("contextKind") or USER_KIND, attribute), pick
        )


def _compute_bucket(text: str) -> float:
    """A number from 0 to 1."""
    digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
    return int(digest[:HASH_DIGITS], 16) / HASH_SIZE


NAME, TITLE = "launchdarkly", "LaunchDarkly"
MAX_NAMED = 20


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
    if _find_flag_list(document) is not None:
        return True
    flags = document.get("flags")
    first = next(iter(flags.values()), None) if isinstance(flags, dict) else None
    is_flag = isinstance(first, dict) and "variations" in first and "fallthrough" in first
    return is_flag or isinstance(document.get("flagValues"), dict)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError, also for an environment that the flags do not have."""
    listed = _find_flag_list(document) if isinstance(document, dict) else None
    return _read_file(document) if listed is None else _read_list(document, listed, environment)


def _find_flag_list(document: Mapping[str, Any]) -> tuple[str, list[Any]] | None:
    """The flags in the REST API's list, with their path."""
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
    # Of duplicate flags, the first counts.
    reader = FlagsReader(clauses, {flag["key"]: flag["variations"] for flag in reversed(flags)})
    read_flags = []
    for index, listed_flag in enumerate(flags):
        targeting = listed_flag["environments"].get(environment)
        flag = Flag(listed_flag["key"], f"{path}[{index}]", tags=_read_tags(listed_flag))
        flag.description = listed_flag.get("description") or listed_flag.get("name") or ""
        flag.archived = listed_flag.get("archived", False)
        if targeting is None:
            flag.add_missing("environment", f"It is not in the environment {environment}.")
        reader.add(flag, targeting or {"on": False})
        read_flags.append(flag)
    notes = (*_note_missing(document, flags), *_note_tags(flags), *clauses.notes)
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, notes)


def _note_missing(document: Mapping[str, Any], flags: Sequence[ListedFlag]) -> Iterator[str]:
    """Reports missing pages: a list states the total number of flags."""
    owner = document if "items" in document else document["flags"]
    total, count = owner.get("totalCount"), len(flags)
    if isinstance(total, int) and total > count:
        yield f"The file has {count:,} of {total:,} flags. The others are on other pages of the list."


def _read_tags(flag: ListedFlag) -> list[str]:
    return [tag for tag in dict.fromkeys(flag.get("tags", ())) if _can_be_tag(tag)]


def _can_be_tag(tag: str) -> bool:
    return MIN_LENGTH <= len(tag) <= MAX_LENGTH


def _note_tags(flags: Sequence[ListedFlag]) -> Iterator[str]:
    left_out = sorted({tag for flag in flags for tag in flag.get("tags", ()) if not _can_be_tag(tag)})
    if left_out:
        named = list_some([clip(tag) for tag in left_out], MAX_NAMED)
        yield f"Tags have {MIN_LENGTH} to {MAX_LENGTH} characters here. Left out: {named}."


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
    served: dict[str, list[Variation]] = {key: [{"value": value}] for key, value in values.items()}
    reader = FlagsReader(clauses, served | variations)
    read_flags = []
    for key, flag in flags.items():
        read_flags.append(Flag(key, f"flags.{key}"))
        reader.add(read_flags[-1], flag)
    for key in values:
        read_flags.append(Flag(key, f"flagValues.{key}"))
        reader.add(read_flags[-1], {"on": True, "fallthrough": {"variation": 0}})
    return Source(TITLE, reader.finish(read_flags), clauses.renamed, clauses.notes)
