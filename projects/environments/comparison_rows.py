"""The rows of the page that compares two environments: sentences in which the words that differ are marked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from itertools import zip_longest

from playground.engine.definitions import StrategyDefinition, VariantDefinition
from projects.environments.comparison import KINDS, Configuration, Pair
from projects.flags.lists.strategy_lines import Palette
from projects.strategies.sentences import format_percent, summarize_strategy

MAX_STRATEGIES = 5
"""Strategies of a flag that a cell describes."""
MAX_VARIANTS = 8
MAX_WORDS = 400
"""Longer sentences are marked as a whole."""
NO_STRATEGIES = "No strategies."


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
    """``is_target``: promoting would overwrite what is newer."""

    environment: str
    at: datetime
    is_target: bool


def find_last_change(changes: Mapping[str, datetime], environments: tuple[str, str]) -> LastChange | None:
    """The later change in one of these environments, None if there is none."""
    known = [(changes[name], name) for name in environments if name in changes]
    if not known:
        return None
    at, name = max(known)
    return LastChange(name, at, name == environments[1])


def _pair_lines(
    pair: Pair, segments: Mapping[int, str], palette: Palette
) -> Iterator[tuple[Line | None, Line | None]]:
    sides = [side.strategies[:MAX_STRATEGIES] for side in pair]
    texts = [[_describe_strategy(each, segments) for each in side] or [NO_STRATEGIES] for side in sides]
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
    marks = [variant not in others for variant in variants[:MAX_VARIANTS]]
    return Line(
        pieces,
        [
            VariantPiece(share.name, share.percent, share.color, differs)
            for share, differs in zip(shares, marks, strict=True)
        ],
    )


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
    """Words with the space before them; each comma and full stop after one is a word too. Joined, they are the text."""
    for number, run in enumerate(text.split(" ")):
        word = run.rstrip(",.")
        yield f" {word}" if number else word
        yield from run[len(word) :]


def _make_pieces(text: str, *, differs: bool) -> tuple[Piece, Piece]:
    """The space before marked words is not marked."""
    words = text.lstrip() if differs else text
    return Piece(text.removesuffix(words)), Piece(words, differs)


def describe_side(side: Configuration, segments: Mapping[int, str]) -> str:
    """A flag in an environment as plain text, for CSV files."""
    sentences = [_describe_strategy(strategy, segments) for strategy in side.strategies] or [NO_STRATEGIES]
    variants = [f"{variant['name']} {format_percent(variant['weight'])} %" for variant in side.variants]
    parts = ["On." if side.enabled else "Off.", *sentences]
    return " ".join([*parts, f"Variants: {', '.join(variants)}."] if variants else parts)


def collect_segment_ids(flags: Iterable[ComparedFlag]) -> set[int]:
    return {
        segment for flag in flags for side in flag.pair for _, segments in side.rows for segment in segments
    }
