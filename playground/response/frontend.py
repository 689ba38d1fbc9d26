"""Builds the answer for frontend SDKs: the flags that are on, each with its variant."""

from __future__ import annotations

from playground.engine.evaluator import Evaluation
from playground.engine.flags import CompiledFlag
from playground.engine.outcomes import PICK, FlagOutcome
from playground.engine.variants import NONE
from playground.response.fragments import FlagFragments
from playground.response.json_text import as_json
from playground.response.snapshot import ResponseSnapshot

BOTH_SPELLINGS = b',"feature_enabled":true,"featureEnabled":true}'
NO_VARIANT = b'{"name":"disabled","enabled":false' + BOTH_SPELLINGS


def render_toggles(compiled: ResponseSnapshot, evaluation: Evaluation) -> bytes:
    """``{"toggles": [...]}`` with the flags that are on, by name."""
    rendered = [
        _toggle(flag, fragments, outcome)
        for fragments, (flag, outcome) in zip(compiled.flags, evaluation.pairs(), strict=True)
        if outcome.on
    ]
    return b'{"toggles":[%b]}' % b",".join(rendered)


def _toggle(flag: CompiledFlag, fragments: FlagFragments, outcome: FlagOutcome) -> bytes:
    return b'{"name":%b,"enabled":true,"variant":%b,"impressionData":%b}' % (
        as_json(flag.name),
        _variant(fragments, outcome),
        b"true" if fragments.impression_data else b"false",
    )


def _variant(fragments: FlagFragments, outcome: FlagOutcome) -> bytes:
    if outcome.decided != NONE:
        pick = outcome.strategies[outcome.decided][PICK]
        if pick != NONE:
            return fragments.strategies[outcome.decided].variant(pick) + BOTH_SPELLINGS
    return NO_VARIANT if outcome.pick == NONE else fragments.picks[outcome.pick] + b"}"
