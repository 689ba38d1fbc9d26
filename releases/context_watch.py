"""Watches saved contexts that affect the number of approvals, so that changing one does not bypass a rule."""

from collections.abc import Iterator
from typing import Any

from flagadmin.core.change_options import is_applied_to
from flagadmin.core.document import Document
from playground.models import SavedContext
from projects.models import Flag, ProjectEnvironment
from projects.projects.approval_rules import BREAKS_EXPECTATION, CHANGES_SAVED_CONTEXT
from releases.gate import is_skipped
from releases.gate_refusal import Gated, NeedsSkip
from releases.tag_watch import compare_rules


def check_saved_context(saved: SavedContext, before: Document | None, after: Document | None) -> None:
    """Raises NeedsSkip if a request could need fewer approvals after the change of the saved context.

    ``before`` and ``after`` are its documents, None for none. One without a project counts in all projects.
    """
    links = ProjectEnvironment.objects.needing_requests().exclude(approval_rules=[])
    if saved.project_id is not None:
        links = links.filter(project=saved.project_id)
    for link in links.order_by("project_id", "environment_id"):
        if not is_applied_to(link.project_id, link.environment_id):
            _check(link, saved, before, after)


def _check(
    link: ProjectEnvironment, saved: SavedContext, before: Document | None, after: Document | None
) -> None:
    reasons = sorted({*_list_reasons(link, before, after)})
    if not reasons or is_skipped(link.project_id, link.environment_id, [""], set()):
        return
    effect = (
        f"This would change {' and '.join(reasons)} of {saved.name}, which approval rules of {link.environment_id} in "
        f"project {link.project_id} depend on. Only those who may skip change requests there can do that."
    )
    raise NeedsSkip(Gated(link.project_id, link.environment_id, [], None, effect=effect))


def _list_reasons(link: ProjectEnvironment, before: Document | None, after: Document | None) -> Iterator[str]:
    old, new = (document and document["context"] for document in (before, after))
    expected, expects = (_list_expected(link, document) for document in (before, after))
    for rule, goes, comes in compare_rules(link.approval_rules, link.required_approvals or 0):
        moved = old != new and ((old is not None and goes) or (new is not None and comes))
        if rule["condition"] == CHANGES_SAVED_CONTEXT and moved:
            yield "the fields"
        if rule["condition"] == BREAKS_EXPECTATION:
            if moved and (expected or expects):
                yield "the fields"
            gone = any(each not in expects for each in expected)
            come = any(each not in expected for each in expects)
            if (gone and goes) or (come and comes):
                yield "the expectations"


def _list_expected(link: ProjectEnvironment, document: Document | None) -> list[Any]:
    """Its expectations of flags of the project in the environment."""
    listed = [
        each
        for each in (document or {}).get("expectations", ())
        if each["environment"] == link.environment_id
    ]
    names = {each["flag"] for each in listed}
    here = set(Flag.objects.filter(project=link.project_id, name__in=names).values_list("name", flat=True))
    return [each for each in listed if each["flag"] in here]
