"""Builds the answer for frontend SDKs: the flags that are on, each with its variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from playground.engine.active import ActiveFlags, Pieces
from playground.engine.outcomes import FlagOutcome
from playground.engine.snapshot import Snapshot
from playground.response.fragments import FlagFragments, StrategyFragments
from playground.response.json_text import as_json

BOTH_SPELLINGS = b',"feature_enabled":true,"featureEnabled":true}'
NO_VARIANT = b'{"name":"disabled","enabled":false' + BOTH_SPELLINGS
OFF = NO_VARIANT.replace(b"true", b"false")


def compile_toggles(snapshot: Snapshot, flags: Sequence[FlagFragments]) -> ActiveFlags[bytes]:
    """Writes what can stand in an answer. `flags` are the fragments of the snapshot's flags."""

    def pieces_of(position: int) -> Pieces[bytes]:
        return _write_pieces(snapshot.flags[position].name, flags[position])

    return ActiveFlags(snapshot, pieces_of)


def render_toggles(toggles: Iterable[bytes]) -> bytes:
    """``{"toggles": [...]}`` with these flags."""
    return b'{"toggles":[' + b",".join(toggles) + b"]}"


def render_toggle(name: str, fragments: FlagFragments, outcome: FlagOutcome) -> bytes:
    """One flag, as an element of the list, where it stands only if it is on."""
    if outcome.on:
        return _write_pieces(name, fragments).of(outcome)
    return b'{"name":%b,"enabled":false,"variant":%b%b' % (as_json(name), OFF, _write_end(fragments))


def _write_pieces(name: str, fragments: FlagFragments) -> Pieces[bytes]:
    head = b'{"name":%b,"enabled":true,"variant":' % as_json(name)
    end = _write_end(fragments)
    return Pieces(
        plain=head + NO_VARIANT + end,
        own=tuple(head + variant + b"}" + end for variant in fragments.picks),
        strategies=tuple(
            tuple(head + variant + BOTH_SPELLINGS + end for variant in _list_variants(strategy))
            for strategy in fragments.strategies
        ),
    )


def _write_end(fragments: FlagFragments) -> bytes:
    return b',"impressionData":%b}' % (b"true" if fragments.impression_data else b"false")


def _list_variants(strategy: StrategyFragments) -> Iterable[bytes]:
    return (strategy.variant(pick) for pick in range(len(strategy.picks)))
