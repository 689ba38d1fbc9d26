"""/import/ID/undo: asks before an import or promotion is undone, with what becomes of each flag."""

from collections.abc import Iterator
from typing import Any

from django.urls import reverse

from flagadmin.core.errors import AppError, NoAccess
from flagadmin.core.wording import choices, clip, pluralize
from groups.console import Breadcrumbs, ConfirmPage
from importer.apply.undo import Undoing, check_may_undo, plan_undo, undo_import
from importer.models import ImportRun
from importer.pages.naming import list_pages_above_part
from importer.runs import access_run
from projects.projects.required_comments import requires_comment

MAX_PLANNED = 2000
"""Flags of an import whose pages look up what undoing it would do."""


class UndoPage(ConfirmPage):
    run: ImportRun

    def plan(self) -> dict[str, Any]:
        self.run = run = access_run(self.caller, self.kwargs["run_id"])
        question = f"Undo {run.noun} {run.preposition} {run.project} / {run.environment}"
        undoing, blocked = self.plan_undoing()
        return {
            "title": question,
            "lead": f"{pluralize(run.written, 'flag')}. Applications get the earlier results at once.",
            "consequences": [] if blocked else list(describe(undoing, run)),
            "blocked": blocked,
            "button": question,
            "hidden": list(self.name_request()),
            "cancel": reverse("import-run", args=[run.id]),
            "comment_required": requires_comment([run.project], [run.environment]),
        }

    def name_request(self) -> Iterator[tuple[str, str]]:
        """The title and the note of the change request that undoing it becomes where changes need one."""
        run = self.run
        name = clip(run.file_name, 200) if run.file_name and not run.promoted_from else ""
        undone = f"{run.noun} of {name}" if name else f"{run.noun} {run.preposition} {run.environment}"
        yield "request_title", f"Undo the {undone}"
        address = self.request.build_absolute_uri(reverse("import-run", args=[run.id]))
        yield "request_note", f"What is undone: {address}"

    def plan_undoing(self) -> tuple[Undoing | None, str]:
        """What it would do, None if that is not looked up, and why it is not possible. Raises NoAccess."""
        try:
            check_may_undo(self.run, caller=self.caller)
            if self.run.written > MAX_PLANNED:
                return None, ""
            return plan_undo(self.run, caller=self.caller), ""
        except NoAccess:
            raise
        except AppError as error:
            return None, error.message

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above_part(self.run)

    def act(self) -> tuple[str, str]:
        run = undo_import(self.kwargs["run_id"], caller=self.caller)
        return f"Undid the {run.noun}.", reverse("import-run", args=[run.id])


def describe(undoing: Undoing | None, run: ImportRun) -> Iterator[str]:
    if undoing is None:
        created = "" if run.promoted_from else " Deletes created ones, or archives them if they are in use."
        yield f"Restores changed flags.{created}"
    else:
        effects = {
            "Restores": undoing.restored,
            "Deletes": undoing.deleted,
            "Archives, because in use:": undoing.archived,
        }
        yield from (f"{verb} {choices(names)}." for verb, names in effects.items() if names)
    if run.saved_contexts:
        yield f"Restores or removes {pluralize(len(run.saved_contexts), 'saved context')}."
    yield f"An undone {run.noun} cannot be redone: {'promote' if run.promoted_from else 'import the file'} again."
