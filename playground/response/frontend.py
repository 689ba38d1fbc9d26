"""Builds the answer for frontend SDKs: the flags that are on, each with its variant."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from playground.engine.active import ActiveFlags, Pieces
from playground.engine.outcomes import FlagOutcome
from playground.engine.snapshot import Snapshot
from playground.response.fragments import FlagFragments, StrategyFragments, as_json

BOTH_SPELLINGS = b',"feature_enabled":true,"featureEnabled":true}'
NO_VARIANT = b'{"name":"disabled","enabled":false' + BOTH_SPELLINGS
OFF = NO_VARIANT.replace(b"true", b"false")


class Toggles:
    """The flags of a snapshot for frontend SDKs, compiled on first use."""

    def __init__(
        self, snapshot: Snapshot, flags: Sequence[FlagFragments], earlier: Toggles | None = None
    ) -> None:
        """`flags` are the fragments of the snapshot's flags. Reuses unchanged flags of `earlier` toggles, for the
        snapshot from which this one was compiled.
        """
        self._snapshot, self._fragments = snapshot, flags
        self._earlier = earlier._flags.left if earlier and earlier._flags else None
        self._flags: ActiveFlags[bytes] | None = None
        self._making = Lock()

    @property
    def are_compiled(self) -> bool:
        return self._flags is not None

    @property
    def flags(self) -> ActiveFlags[bytes]:
        """Prepares the parts of answers on first use. Concurrent callers wait."""
        return self._flags or self._make()

    def _make(self) -> ActiveFlags[bytes]:
        with self._making:
            if self._flags is None:
                self._flags = ActiveFlags(self._snapshot, self._write_pieces, self._earlier)
                self._earlier = None
            return self._flags

    def _write_pieces(self, position: int) -> Pieces[bytes]:
        return _write_pieces(self._snapshot.flags[position].name, self._fragments[position])


def render_toggles(toggles: Iterable[bytes]) -> bytes:
    """``{"toggles": [...]}`` with these flags."""
    return b"".join((b'{"toggles":[', b",".join(toggles), b"]}"))


def render_toggle(name: str, fragments: FlagFragments, outcome: FlagOutcome) -> bytes:
    """One flag as an element of the list, which contains it only if it is on."""
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
