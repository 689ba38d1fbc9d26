"""What the pages about a pending import share: the flags as they would be after it, without writing anything."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from flagadmin.core.errors import Conflict
from groups.access import Caller
from groups.console import Breadcrumbs, ConsolePage
from importer.apply.execute import describe_change
from importer.models import ImportRun
from importer.pages.naming import list_pages_above_part
from importer.plan.build import plan_import
from importer.runs import access_run, load_body
from importer.states import PlannedStates, plan_states


@dataclass(frozen=True, slots=True)
class IfImported:
    """Results, small enough to send to another process: rendered, or their rows for CSV."""

    html: str = ""
    header: Sequence[str] = ()
    rows: list[list[Any]] = field(default_factory=list)
    outdated: str = ""
    used_fields: frozenset[str] = frozenset()


class PendingRunPage(ConsolePage):
    advice = ""  # for those who come too late

    def find(self) -> None:
        self.run = access_run(self.caller, self.kwargs["run_id"])
        if self.run.state != ImportRun.State.PENDING:
            raise Conflict(f"This {self.run.noun} is no longer pending. {self.advice}")

    def get_breadcrumbs(self) -> Breadcrumbs:
        return list_pages_above_part(self.run)


def plan_run(run_id: UUID, caller: Caller) -> tuple[ImportRun, PlannedStates, str]:
    """The run, its states, and what has changed since its preview. Raises NotFound, Conflict."""
    run = access_run(caller, run_id)
    states = plan_states(plan_import(load_body(run), caller=caller))
    assert run.checked_at is not None
    is_outdated = states.plan.fingerprint != run.fingerprint
    return run, states, describe_change(states.plan, run.checked_at) if is_outdated else ""
