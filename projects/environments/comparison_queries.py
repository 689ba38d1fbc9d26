"""The flags of a project in two of its environments, and the rows of the page that compares them.

Rows are sentences with the differing words marked.

Reads the projects that use an environment, and the losses from deleting it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import QueryDict

from flagadmin.core.errors import ValidationError, clip, join_words, pluralize
from groups.access import Caller
from groups.models import RolePermission
from playground.engine.definitions import StrategyDefinition, VariantDefinition
from playground.engine.strategy_types import GROUP_ID, find_parameters
from projects.deletion.kept_names import ENVIRONMENT, list_users
from projects.environments.comparison import KINDS, Configuration, Pair, find_differences, read_configurations
from projects.flags.lists.conditions import text_query
from projects.flags.lists.strategy_lines import Palette
from projects.history.diff import STRATEGY_VARIANTS, compare_strategies
from projects.models import Environment, Flag, FlagEnvironment, Project, ProjectEnvironment, Strategy
from projects.strategies.sentences import format_percent, summarize_strategy

MAX_STRATEGIES = 5
"""Strategies of a flag described in a cell."""
MAX_VARIANTS = 8
MAX_WORDS = 400
"""Longer sentences are marked as a whole."""
NO_STRATEGIES = "No strategies."
_IN_SENTENCES = {*find_parameters()} - {GROUP_ID.name}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a sentence, and whether the other environment differs there."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True)
class VariantPiece:
    name: str
    share: str
    color: str
    differs: bool
    details: str = ""
    """The differences besides the name and the percentage."""


@dataclass(frozen=True, slots=True)
class Line:
    """A strategy, or the variants of the environment (without ``pieces``)."""

    pieces: Sequence[Piece]
    variants: Sequence[VariantPiece] = ()


@dataclass(frozen=True, slots=True)
class Cell:
    """A flag in one of the environments."""

    environment: str
    enabled: bool
    switch_differs: bool
    lines: Sequence[Line]
    more: int


@dataclass(frozen=True, slots=True)
class ComparedFlag:
    """A row of the list. ``kinds`` are keys of KINDS."""

    id: int
    name: str
    description: str | None
    pair: Pair
    kinds: tuple[str, ...]

    @property
    def differences(self) -> list[str]:
        return [KINDS[kind] for kind in self.kinds]

    def cells(
        self, environments: tuple[str, str], segments: Mapping[int, str], palette: Palette
    ) -> tuple[Cell, Cell]:
        lines = [list(side) for side in zip(*_pair_lines(self.pair, segments, palette), strict=True)] or [
            [],
            [],
        ]
        first, second = (
            Cell(
                name,
                side.enabled,
                self.pair[0].enabled != self.pair[1].enabled,
                [line for line in listed if line is not None],
                max(len(side.rows) - MAX_STRATEGIES, 0),
            )
            for name, side, listed in zip(environments, self.pair, lines, strict=True)
        )
        return first, second


@dataclass(frozen=True, slots=True)
class LastChange:
    """``is_target``: promoting would overwrite the newer state."""

    environment: str
    at: datetime
    is_target: bool


def find_last_change(changes: Mapping[str, datetime], environments: tuple[str, str]) -> LastChange | None:
    """The later change in one of these environments; None if there is none."""
    known = [(changes[name], name) for name in environments if name in changes]
    if not known:
        return None
    at, name = max(known)
    return LastChange(name, at, name == environments[1])


def _pair_lines(
    pair: Pair, segments: Mapping[int, str], palette: Palette
) -> Iterator[tuple[Line | None, Line | None]]:
    sides = [side.strategies[:MAX_STRATEGIES] for side in pair]
    texts = describe_strategies(sides[0], sides[1], segments)
    for index, (left, right) in enumerate(zip_longest(*texts, fillvalue="")):
        pieces = mark_differences(left, right)
        ours, theirs = (side[index]["variants"] if index < len(side) else [] for side in sides)
        yield _make_line(pieces[0], ours, theirs, palette), _make_line(pieces[1], theirs, ours, palette)
    ours, theirs = (side.variants for side in pair)
    yield _make_line((), ours, theirs, palette), _make_line((), theirs, ours, palette)


def _make_line(
    pieces: Sequence[Piece],
    variants: Sequence[VariantDefinition],
    others: Sequence[VariantDefinition],
    palette: Palette,
) -> Line | None:
    if not pieces and not variants:
        return None
    shares = palette.shares(variants[:MAX_VARIANTS])
    return Line(
        pieces,
        [
            VariantPiece(
                share.name, share.percent, share.color, variant not in others, _say_hidden(variant, others)
            )
            for share, variant in zip(shares, variants, strict=False)
        ],
    )


_HIDDEN = {"weightType": "type", "stickiness": "stickiness", "payload": "payload", "overrides": "overrides"}
"""The members of a variant besides its name and weight, by their labels."""


def _say_hidden(variant: VariantDefinition, others: Sequence[VariantDefinition]) -> str:
    """The differences from the variant with the same name, except the weight: ``payload json {…}``."""
    other = next((each for each in others if each["name"] == variant["name"]), None)
    if other is None:
        return ""
    return ", ".join(
        f"{label} {_format_member(variant.get(key))}"
        for key, label in _HIDDEN.items()
        if (variant.get(key) or None) != (other.get(key) or None)
    )


def _format_member(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{value.get('type')} {clip(str(value.get('value')))}"
    if isinstance(value, list):
        return (
            "; ".join(f"{each['contextName']} {clip(', '.join(each['values']))}" for each in value) or "none"
        )
    return str(value or "none")


def describe_strategies(
    source: Sequence[StrategyDefinition], target: Sequence[StrategyDefinition], segments: Mapping[int, str]
) -> list[list[str]]:
    """The sentences of both sides. Differing strategies in the same position never have the same sentence."""
    texts = [
        [_describe_strategy(each, segments) for each in side] or [NO_STRATEGIES] for side in (source, target)
    ]
    for index, (left, right) in enumerate(zip(source, target, strict=False)):
        if left["name"] == right["name"]:
            for side, more in zip(texts, _list_hidden(left, right, segments, texts[0][index]), strict=True):
                side[index] += f" ({more})" if more else ""
    return texts


def _list_hidden(
    left: StrategyDefinition, right: StrategyDefinition, segments: Mapping[int, str], sentence: str
) -> tuple[str, str]:
    """The differences that neither sentence shows, of both sides. ``sentence``: the left one's."""
    same = sentence == _describe_strategy(right, segments)
    hidden = (left["parameters"].keys() | right["parameters"].keys()) - _IN_SENTENCES
    changes = [
        change
        for change in compare_strategies(left, right, segments)
        if change.part in hidden or (same and change.part != STRATEGY_VARIANTS)
    ]
    before = (f"{change.part} {change.before or 'none'}" for change in changes)
    after = (f"{change.part} {change.after or 'none'}" for change in changes)
    return ", ".join(before), ", ".join(after)


def _describe_strategy(strategy: StrategyDefinition, segments: Mapping[int, str]) -> str:
    title = f"{strategy['title']}: " if strategy["title"] else ""
    disabled = " Disabled." if strategy["disabled"] else ""
    return f"{title}{summarize_strategy(strategy, segments=segments)}{disabled}"


def mark_differences(left: str, right: str) -> tuple[list[Piece], list[Piece]]:
    """Both texts as pieces, word by word."""
    if left == right:
        return [Piece(left)], [Piece(right)]
    words = list(_split_words(left)), list(_split_words(right))
    if max(map(len, words)) > MAX_WORDS:
        return [Piece(left, True)], [Piece(right, True)]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    for tag, *ends in SequenceMatcher(None, *words, autojunk=False).get_opcodes():
        for side, its_words, (start, end) in zip(sides, words, (ends[:2], ends[2:]), strict=True):
            text = "".join(its_words[start:end])
            side += [piece for piece in _make_pieces(text, differs=tag != "equal") if piece.text]
    return sides


def _split_words(text: str) -> Iterator[str]:
    """Words with the preceding space; each comma and full stop after one is a separate word. Joined, they
    are the text.
    """
    for number, run in enumerate(text.split(" ")):
        word = run.rstrip(",.")
        yield f" {word}" if number else word
        yield from run[len(word) :]


def _make_pieces(text: str, *, differs: bool) -> tuple[Piece, Piece]:
    """Does not mark the space before marked words."""
    words = text.lstrip() if differs else text
    return Piece(text.removesuffix(words)), Piece(words, differs)


def describe_sides(pair: Pair, segments: Mapping[int, str]) -> list[str]:
    """A flag in both environments as plain text, for CSV files."""
    texts = describe_strategies(pair[0].strategies, pair[1].strategies, segments)
    sides = zip(pair, reversed(pair), texts, strict=True)
    return [_describe_side(side, other, sentences) for side, other, sentences in sides]


def _describe_side(side: Configuration, other: Configuration, sentences: Sequence[str]) -> str:
    others = other.variants
    variants = []
    for variant in side.variants:
        hidden = _say_hidden(variant, others)
        text = f"{variant['name']} {format_percent(variant['weight'])} %"
        variants.append(f"{text} ({hidden})" if hidden else text)
    parts = ["On." if side.enabled else "Off.", *sentences]
    return " ".join([*parts, f"Variants: {', '.join(variants)}."] if variants else parts)


def collect_segment_ids(flags: Iterable[ComparedFlag]) -> set[int]:
    return {
        segment for flag in flags for side in flag.pair for _, segments in side.rows for segment in segments
    }


ALL, DIFFERS, SAME = "all", "", "same"


def choose_environments(names: Sequence[str], source: str, target: str) -> tuple[str, str]:
    """Returns the given environments; by default into production, from the first other one. Raises ValidationError."""
    for path, name in (("from", source), ("to", target)):
        if name and name not in names:
            raise ValidationError.at(path, f"{name} is not an environment of this project")
    production = set(Environment.objects.production().values_list("name", flat=True))
    fallbacks = [name for name in names if name in production] or list(names[-1:])
    target = target or next((name for name in fallbacks if name != source), names[-1])
    return source or next((name for name in names if name != target), target), target


def compare_flags(project: Project, environments: tuple[str, str], *, text: str = "") -> list[ComparedFlag]:
    """The project's active flags by name, with their differences. Five queries for 2,000 flags."""
    flags = Flag.objects.active().filter(project=project)
    if text:
        flags = flags.filter(text_query(text))
    rows = list(flags.order_by("name").values_list("pk", "name", "description"))
    pairs = read_configurations([row[0] for row in rows], environments)
    return [
        ComparedFlag(pk, name, description, pairs[pk], find_differences(pairs[pk]))
        for pk, name, description in rows
    ]


def select_flags(flags: Iterable[ComparedFlag], *, show: str, kind: str) -> list[ComparedFlag]:
    """Selects the flags that the page lists with these filters."""
    if show == SAME:
        return [flag for flag in flags if not flag.kinds]
    if show == ALL:
        return list(flags)
    return [flag for flag in flags if flag.kinds and (not kind or kind in flag.kinds)]


def select_matching(project: Project, environments: tuple[str, str], query: QueryDict) -> list[ComparedFlag]:
    """The flags that the page with this query string lists, on all its pages."""
    flags = compare_flags(project, environments, text=query.get("q", "").strip())
    return select_flags(flags, show=query.get("show", DIFFERS), kind=query.get("in", ""))


def describe_losses(environment: Environment, caller: Caller) -> Iterator[str]:
    """Describes the losses from deleting the environment, in nine queries. Projects that no longer use it still have
    their flags' settings there.
    """
    yield f"Environment {environment.name} ({environment.type})"
    strategies = Strategy.objects.filter(environment=environment)
    states = FlagEnvironment.objects.filter(environment=environment)
    touched = states.filter(Q(enabled=True) | ~Q(variants=[]))
    flags = {*strategies.values_list("flag_id", flat=True), *touched.values_list("flag_id", flat=True)}
    if flags:
        number = pluralize(strategies.count(), "strategy", "strategies")
        yield f"What {pluralize(len(flags), 'flag')} had there, with {number}"
    if plans := environment.release_plans.count():
        yield f"{pluralize(plans, 'release plan')} of flags there"
    if safeguards := Flag.objects.filter(safeguards__environment=environment).count():
        yield f"{pluralize(safeguards, 'safeguard')} of flags there"
    # Drafts are private to their authors.
    if requests := environment.change_requests.exclude(state="Draft").count():
        yield f"{pluralize(requests, 'change request')}"
    limited = RolePermission.objects.filter(environment=environment)
    for role, number in limited.values_list("role__name").annotate(Count("pk")).order_by("role__name"):
        yield f"{pluralize(number, 'permission')} of role {role} that {'is' if number == 1 else 'are'} limited to it"
    if users := list_users(ENVIRONMENT, [environment.name], caller):
        yield f"What applies to this environment only: {join_words(users)}"


def find_projects_with_use(environment: Environment, caller: Caller) -> QuerySet[Project]:
    """The caller's active projects, with ``is_used`` and ``flags_on`` there, those that use it first."""
    links = ProjectEnvironment.objects.filter(project=OuterRef("pk"), environment=environment)
    on = Q(
        flags__archived_at=None,
        flags__environments__environment=environment,
        flags__environments__enabled=True,
    )
    projects = Project.objects.active().readable_by(caller)
    counted_projects = projects.annotate(is_used=Exists(links), flags_on=Count("flags", filter=on))
    return counted_projects.order_by("-is_used", "name", "pk")
