"""Reads LaunchDarkly's flags in one environment: what each serves to whom, and how it hashes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha1
from typing import Any, NotRequired

from typing_extensions import TypedDict

from importer.converting.conditions import All, Unsupported, match_any
from importer.converting.flags import Flag, Outcome, Parent, Result, Rule, Share, Split
from importer.converting.launchdarkly_clauses import USER_KIND, Clause, Clauses
from importer.converting.naming import make_name
from importer.converting.rollouts import pick_share

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
    """Reads the flags of a file, which can name each other."""

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
        """Reads the result while it is off. A flag here is nothing then, and applications take their own default."""
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
        if len(weighted) == 1:  # also for contexts without the attribute, whose bucket is the first
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
