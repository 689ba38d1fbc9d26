"""What frontend SDKs read: the flags that are on, each with its variant."""

from __future__ import annotations

from playground.engine.batch import PICK
from playground.engine.evaluator import Evaluation, FlagOutcome
from playground.engine.snapshot import CompiledFlag
from playground.engine.variants import NONE
from playground.response.fragments import FlagTemplate, as_json

BOTH_SPELLINGS = b',"feature_enabled":true,"featureEnabled":true}'
NO_VARIANT = b'{"name":"disabled","enabled":false' + BOTH_SPELLINGS


def render_toggles(evaluation: Evaluation) -> bytes:
    """``{"toggles": [...]}`` with the flags that are on, by name."""
    rendered = [_toggle(flag, outcome) for flag, outcome in evaluation.pairs() if outcome.on]
    return b'{"toggles":[%b]}' % b",".join(rendered)


def _toggle(flag: CompiledFlag, outcome: FlagOutcome) -> bytes:
    template: FlagTemplate = flag.template
    impression_data = b"true" if template.impression_data else b"false"
    return b'{"name":%b,"enabled":true,"variant":%b,"impressionData":%b}' % (
        as_json(flag.name),
        _variant(template, outcome),
        impression_data,
    )


def _variant(template: FlagTemplate, outcome: FlagOutcome) -> bytes:
    if outcome.decided != NONE:
        chosen = outcome.strategies[outcome.decided][PICK]
        if chosen != NONE:
            return template.strategies[outcome.decided][1].variant(chosen) + BOTH_SPELLINGS
    return NO_VARIANT if outcome.pick == NONE else template.picks[outcome.pick] + b"}"
