"""Flagsmith's environment document: flags, overrides for segments and identities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from importer.converting.conditions import InSegment, Unsupported, match_any
from importer.converting.files import validate
from importer.converting.flags import Flag, Outcome, Result, Rule, Share, Source, Split
from importer.converting.flagsmith_segments import Segment, SegmentReader, hash_to_percentage
from importer.converting.naming import add_value
from importer.converting.rollouts import pick_share

NAME, TITLE = "flagsmith", "Flagsmith"


class Feature(TypedDict):
    id: NotRequired[int]
    name: str


class Option(TypedDict):
    value: Any


class MultivariateValue(TypedDict):
    id: NotRequired[int | None]
    percentage_allocation: float
    multivariate_feature_option: Option
    mv_fs_value_uuid: NotRequired[str | None]


class FeatureSegment(TypedDict):
    priority: NotRequired[int | None]


class FeatureState(TypedDict):
    feature: Feature
    enabled: bool
    feature_state_value: NotRequired[Any]
    django_id: NotRequired[int | None]
    featurestate_uuid: NotRequired[str | None]
    feature_segment: NotRequired[FeatureSegment | None]
    multivariate_feature_state_values: NotRequired[list[MultivariateValue] | None]


class ProjectSegment(Segment):
    feature_states: NotRequired[list[FeatureState] | None]


class Project(TypedDict):
    segments: NotRequired[list[ProjectSegment] | None]


class IdentityOverride(TypedDict):
    identifier: str
    identity_features: NotRequired[list[FeatureState] | None]


class Environment(TypedDict):
    api_key: NotRequired[str]
    name: NotRequired[str]
    project: NotRequired[Project]
    feature_states: list[FeatureState]
    identity_overrides: NotRequired[list[IdentityOverride] | None]


_ENVIRONMENT = TypeAdapter(Environment)


def recognize(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("feature_states"), list)


def read(document: Any, environment: str) -> Source:
    """Raises ValidationError."""
    reader = _Reader(validate(_ENVIRONMENT, document))
    return Source(TITLE, list(reader.flags()), {"identifier of an identity": "userId"})


class _Reader:
    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.prefix = f"{environment.get('api_key', '')}_"
        self.segments = (environment.get("project") or {}).get("segments") or []
        self._segments: dict[int, tuple[SegmentReader, InSegment]] = {}
        self.overrides: dict[str, list[tuple[float, ProjectSegment, FeatureState]]] = {}
        for segment in self.segments:
            for state in segment.get("feature_states") or ():
                listed = self.overrides.setdefault(state["feature"]["name"], [])
                listed.append((_get_priority(state), segment, state))
        self.identities: dict[str, list[tuple[str, FeatureState]]] = {}
        for identity in environment.get("identity_overrides") or ():
            for state in identity.get("identity_features") or ():
                listed_states = self.identities.setdefault(state["feature"]["name"], [])
                listed_states.append((identity["identifier"], state))

    def flags(self) -> Iterator[Flag]:
        for index, state in enumerate(self.environment["feature_states"]):
            flag = Flag(state["feature"]["name"], f"feature_states[{index}]")
            try:
                self._read(flag, state)
            except Unsupported as error:
                flag.add_missing("segments", str(error))
            yield flag

    def _read(self, flag: Flag, default: FeatureState) -> None:
        flag.rules = [*self._read_identity_rules(flag), *self._read_segment_rules(flag)]
        flag.rules.append(Rule(self._read_result(flag, default), title="Default"))

    def _read_identity_rules(self, flag: Flag) -> Iterator[Rule]:
        """A rule for each state that identities have."""
        members: dict[Outcome, list[str]] = {}
        for identifier, state in self.identities.get(flag.name, ()):
            outcome = self._read_result(flag, state)
            if isinstance(outcome, Split):
                raise Unsupported("An identity has percentages of its own.")
            members.setdefault(outcome, []).append(identifier)
        for outcome, identifiers in members.items():
            yield Rule(outcome, match_any("userId", identifiers), "Identities")

    def _read_segment_rules(self, flag: Flag) -> Iterator[Rule]:
        """The override with the lowest priority wins, and of several the first."""
        for _, segment, state in sorted(self.overrides.get(flag.name, ()), key=lambda override: override[0]):
            reader, condition = self._read_segment(segment)
            yield Rule(
                self._limit_to_segment(self._read_result(flag, state), reader),
                condition,
                f"Segment {segment['name']}",
            )

    def _read_segment(self, segment: ProjectSegment) -> tuple[SegmentReader, InSegment]:
        key = id(segment)
        if key not in self._segments:
            reader = SegmentReader(segment, self.prefix)
            self._segments[key] = reader, InSegment(segment["name"], reader.read())
        return self._segments[key]

    def _limit_to_segment(self, result: Outcome | Split, reader: SegmentReader) -> Outcome | Split:
        """The result for the share of users that a segment has."""
        if reader.percentage is None:
            return result
        if isinstance(result, Split):
            raise Unsupported("A segment with a percentage of users shares out variants.")
        percentage, field, pick_percentage = reader.percentage
        shares = (Share(result, percentage), Share(Result.NEXT, 100 - percentage))

        def pick(identifier: str) -> Outcome:
            return result if pick_percentage(identifier) <= percentage else Result.NEXT

        return Split(shares, field, pick)

    def _read_result(self, flag: Flag, state: FeatureState) -> Outcome | Split:
        value = state.get("feature_state_value")
        if not state["enabled"]:
            if value is not None:
                sentence = (
                    f"Where it is off, its value is {value!r}; here, applications get their own default."
                )
                flag.add_difference("off", sentence[:300])
            return Result.OFF
        options = state.get("multivariate_feature_state_values") or []
        outcome = _read_outcome(flag, value)
        return self._split(flag, state, outcome, options) if options else outcome

    def _split(
        self, flag: Flag, state: FeatureState, control: Outcome, options: Sequence[MultivariateValue]
    ) -> Split:
        key = str(state.get("django_id") or state.get("featurestate_uuid") or "")
        shares = [
            Share(
                _read_outcome(flag, option["multivariate_feature_option"]["value"]),
                option["percentage_allocation"],
            )
            for option in sorted(options, key=_make_sort_key)
        ]
        shares.append(Share(control, max(0.0, 100 - sum(share.weight for share in shares))))

        def pick(identifier: str) -> Outcome:
            return pick_share(shares, hash_to_percentage([key, self.prefix + identifier]))

        return Split(tuple(shares), "userId", pick)


def _make_sort_key(option: Mapping[str, Any]) -> Any:
    return option.get("id") or 0, option.get("mv_fs_value_uuid") or ""


def _get_priority(state: FeatureState) -> float:
    priority = (state.get("feature_segment") or {}).get("priority")
    return float("inf") if priority is None else priority


def _read_outcome(flag: Flag, value: Any) -> Outcome:
    return Result.ON if value is None else add_value(flag.values, value)
