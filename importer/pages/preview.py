"""What the preview of an import says, from what its check has kept."""

from collections.abc import Collection, Iterator
from typing import Any

from importer.models import ImportRun
from importer.pages.flag_rows import ACTIONS, EXCLUDABLE
from projects.models import Environment

PROBLEMS_SHOWN = 100
NAMES_SHOWN = 20


def preview_context(run: ImportRun, ticked: Collection[str]) -> dict[str, Any]:
    """``ticked`` are flags that the address names: ticks made on another page of the list."""
    kept = run.preview
    ticks = run.reports.filter(name__in=ticked, action__in=EXCLUDABLE).values_list("name", "action")
    excluding = dict(ticks)
    written = run.counts.get("create", 0) + run.counts.get("change", 0)
    return {
        "sentence": sentence(run.counts),
        "problems": kept.get("problems", ())[:PROBLEMS_SHOWN],
        "problem_count": kept.get("problemCount", 0),
        "more_problems": max(kept.get("problemCount", 0) - PROBLEMS_SHOWN, 0),
        "created": list(created(kept)),
        "notes": list(notes(kept)),
        "elsewhere": [name for name in kept.get("sources", ()) if name != run.environment],
        "is_production": Environment.objects.filter(name=run.environment, type="production").exists(),
        "blocked": blocked(run),
        "refused": run.counts.get("refuse", 0),
        "ticks": excluding,
        "importing": written - sum(action != "refuse" for action in excluding.values()),
    }


def sentence(counts: dict[str, int]) -> str:
    """``1 new, 2 changed, 7 the same, 1 skipped. Nothing has been written.``"""
    parts = [f"{counts[action]:,} {words}" for action, (words, _) in ACTIONS.items() if counts.get(action)]
    return f"{', '.join(parts) or 'No flags'}. Nothing has been written."


def created(kept: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What else the import makes: (kind, names)."""
    kinds = (("context field", "contextFields"), ("tag type", "tagTypes"), ("segment", "segments"))
    for kind, key in kinds:
        if names := kept.get(key):
            yield f"{len(names)} {kind}{'s' if len(names) > 1 else ''}", _listed(names)


def notes(kept: dict[str, Any]) -> Iterator[str]:
    """What else is worth knowing. Where the file comes from is said above."""
    listed = [note for note in kept.get("notes", ()) if not note.startswith("This file was exported from")]
    yield from listed[:PROBLEMS_SHOWN]
    if (more := kept.get("noteCount", 0) - PROBLEMS_SHOWN) > 0:
        yield f"{more:,} more notes are in the report."
    if names := kept.get("defaulted"):
        yield f"Enabled without a strategy; the default will be added: {_listed(names)}."


def _listed(names: list[str]) -> str:
    return ", ".join(names[:NAMES_SHOWN]) + (" …" if len(names) > NAMES_SHOWN else "")


def blocked(run: ImportRun) -> str:
    """Why it cannot be imported now, whatever is excluded; "" where it can."""
    if refusal := run.preview.get("refusal"):
        return refusal
    if run.preview.get("general"):
        return "Correct the file: some problems are not about single flags."
    if run.counts.get("create", 0) + run.counts.get("change", 0):
        return ""
    if run.preview.get("problemCount"):
        return "Correct the file: none of its flags can be imported."
    return "Everything in this file is here already."
