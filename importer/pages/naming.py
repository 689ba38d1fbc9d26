"""Titles and breadcrumbs for the pages of imports and promotions."""

from django.urls import reverse

from flagadmin.core.wording import pluralize
from groups.console import Breadcrumbs
from importer.models import ImportRun
from projects.console import PROJECTS, project_url
from projects.models import Project

State = ImportRun.State
_IMPORT = {State.DONE: "Imported", State.UNDONE: "Undone: import", State.RUNNING: "Importing"}
_PROMOTION = {State.DONE: "Promoted", State.UNDONE: "Undone: promotion", State.RUNNING: "Promoting"}


def name_run(run: ImportRun) -> str:
    """``Import into checkout / production``, ``Promote 3 flags to production``, in the past tense once it is done."""
    state = State(run.state)
    if not run.promoted_from:
        return f"{_IMPORT.get(state, 'Import')} into {run.project} / {run.environment}"
    if state == State.UNDONE:
        return f"{_PROMOTION[state]} to {run.environment}"
    flags = pluralize(run.written, "flag")
    return f"{_PROMOTION.get(state, 'Promote')} {flags} to {run.environment}"


def list_pages_above(run: ImportRun) -> Breadcrumbs:
    if not run.promoted_from:
        return (("Past imports", reverse("imports")),)
    environments = (
        f"{project_url(run.project, 'environments-compare')}?from={run.promoted_from}&to={run.environment}"
    )
    name = Project.objects.filter(pk=run.project).values_list("name", flat=True).first() or run.project
    return (PROJECTS, (name, project_url(run.project)), ("Environments", environments))


def list_pages_above_part(run: ImportRun) -> Breadcrumbs:
    """The same for a page of the run besides its own."""
    return (*list_pages_above(run), (name_run(run), reverse("import-run", args=[run.id])))
