"""``{% prove_rows rows as proofs %}`` for a list of flags that can go: the proof of each, by the name of the flag."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.template import Library
from django.urls import reverse
from django.utils import timezone

from playground.engine.outcomes import State
from playground.stale.queries import Proof, prove_flags, write_task
from projects.console import flag_url
from projects.flags.lists.cells import FlagRow
from projects.flags.lists.conditions import list_reasons

register = Library()


@dataclass(frozen=True, slots=True)
class ProvenRow:
    """What can be done next with a flag. ``results``: pairs of environments, joined, and what everybody gets there."""

    proof: Proof
    keep: str
    task: str
    may_complete: bool
    archive: str
    blocker: str

    @property
    def results(self) -> list[tuple[str, str]]:
        places: dict[str, list[str]] = {}
        for environment, words in self.proof.everybody_gets.items():
            places.setdefault(words, []).append(environment)
        return [(", ".join(names), words) for words, names in places.items()]


@register.simple_tag(takes_context=True)
def prove_rows(context: Mapping[str, Any], rows: Sequence[FlagRow]) -> Mapping[str, ProvenRow]:
    now, caller = timezone.now(), context["caller"]
    proofs = prove_flags([row.flag for row in rows], list_reasons(now), now=now, caller=caller)
    back = context["request"].get_full_path()
    return {row.flag.name: _make_row(row, proof, back) for row, proof in zip(rows, proofs, strict=True)}


def _make_row(row: FlagRow, proof: Proof, back: str) -> ProvenRow:
    kept = proof.kept
    may_archive = row.may["archive"] and proof.can_be_archived
    return ProvenRow(
        proof,
        "" if kept is None else kept.variant or ("on" if kept.state is State.ON else "off"),
        write_task(proof),
        row.may["edit"] and kept is not None,
        f"{reverse('all-flags-archive')}?{urlencode({'name': row.flag.name, 'next': back})}"
        if may_archive
        else "",
        flag_url(row.flag.project_id, proof.dependents[0]) if proof.dependents else "",
    )
