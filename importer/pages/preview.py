"""Template variables of an import's preview, taken from the stored run."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from flagadmin.core.wording import choices, pluralize
from importer.models import ImportRun
from importer.pages.flag_rows import ACTIONS, EXCLUDABLE
from importer.plan.entries import note_on_source
from importer.plan.unproposable import UNPROPOSABLE
from projects.models import Environment

PROBLEMS_SHOWN = 100
NAMES_SHOWN = 20
MAX_NAMES_IN_BAR = 3
"""Of the bar that stays in view, over everything else on a phone."""


def preview_context(run: ImportRun, ticked: Collection[str]) -> dict[str, Any]:
    """The template variables. ``ticked``: flags in the URL, selected on other pages of the list."""
    preview = run.preview
    ticks = run.reports.filter(name__in=ticked, action__in=EXCLUDABLE).values_list("name", "action")
    excluding = dict(ticks)
    return {
        "sentence": summarize_counts(run.counts),
        "problems": preview.get("problems", ())[:PROBLEMS_SHOWN],
        "problem_count": preview.get("problemCount", 0),
        "more_problems": max(preview.get("problemCount", 0) - PROBLEMS_SHOWN, 0),
        "created": list(describe_created(preview)),
        "saved_contexts": list(describe_saved_contexts(preview)),
        "also": f" and {pluralize(saved_context_count, 'saved context')}"
        if (saved_context_count := count_written_contexts(preview))
        else "",
        "notes": list(list_notes(preview, run.environment)),
        "elsewhere": [name for name in preview.get("sources", ()) if name != run.environment],
        "is_production": Environment.objects.production().filter(name=run.environment).exists(),
        "blocked": explain_block(run),
        **describe_proposal(preview.get("request", {})),
        "refused": run.counts.get("refuse", 0),
        "ticks": excluding,
        "importing": run.written - sum(action != "refuse" for action in excluding.values()),
    }


def summarize_counts(counts: dict[str, int]) -> str:
    """A summary: ``1 new, 2 changed, 7 the same, 1 skipped. Nothing has been written.``"""
    parts = [f"{counts[action]:,} {words.result}" for action, words in ACTIONS.items() if counts.get(action)]
    return f"{', '.join(parts) or 'No flags'}. Nothing has been written."


def describe_created(preview: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(kind, names) of everything else that the import creates."""
    kinds = (("context field", "contextFields"), ("tag type", "tagTypes"), ("segment", "segments"))
    for kind, key in kinds:
        if names := preview.get(key):
            yield f"{len(names)} {kind}{'s' if len(names) > 1 else ''}", _join_names(names)


def describe_saved_contexts(preview: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(what happens, names) of the file's saved contexts: ``("Creates 1 saved context", "Ada")``."""
    verbs = (("Creates", "create"), ("Changes", "change"), ("Leaves as it is", "same"))
    for verb, action in verbs:
        if names := preview.get("savedContexts", {}).get(action):
            yield f"{verb} {pluralize(len(names), 'saved context')}", _join_names(names)


def list_notes(preview: dict[str, Any], environment: str) -> Iterator[str]:
    """The notes, except for the one about the source environment, which the page shows separately."""
    elsewhere = {note_on_source(source, environment) for source in preview.get("sources", ())}
    listed = [note for note in preview.get("notes", ()) if note not in elsewhere]
    yield from listed[:PROBLEMS_SHOWN]
    if (unlisted := preview.get("noteCount", 0) - PROBLEMS_SHOWN) > 0:
        yield f"{unlisted:,} more notes are in the report."
    if names := preview.get("defaulted"):
        yield f"Enabled without a strategy; the default will be added: {_join_names(names)}."


def describe_proposal(foreseen: Mapping[str, Any]) -> dict[str, Any]:
    """What the page says of a change request with this import (`foresee_request`)."""
    on_at_once = choices(foreseen.get("unproposable", ()), limit=MAX_NAMES_IN_BAR)
    return {
        "is_proposed": foreseen.get("isProposed", True),
        "unproposable": f"{UNPROPOSABLE} {on_at_once}." if on_at_once else "",
        "needed_first": choices(foreseen.get("neededFirst", ()), limit=MAX_NAMES_IN_BAR),
        "also_left_out": choices(foreseen.get("alsoLeftOut", ()), limit=MAX_NAMES_IN_BAR),
        "left_out": choices(foreseen.get("leftOut", ()), limit=MAX_NAMES_IN_BAR),
    }


def count_written_contexts(preview: dict[str, Any]) -> int:
    """Counts the saved contexts that the import creates or changes."""
    saved = preview.get("savedContexts", {})
    return sum(len(saved.get(action, ())) for action in ("create", "change"))


def _join_names(names: list[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (" …" if len(names) > NAMES_SHOWN else "")


def explain_block(run: ImportRun) -> str:
    """Explains why nothing can be imported, whichever flags are excluded; "" if something can."""
    if refusal := run.preview.get("refusal"):
        return refusal
    if run.preview.get("general"):
        return "Correct the file: some problems affect more than single flags."
    if run.written + count_written_contexts(run.preview):
        return ""
    if run.preview.get("problemCount"):
        return "Correct the file: none of its flags can be imported."
    return "There is nothing to import: every flag already matches the file."
