"""/stale-flags/: removable flags, each with the proof, from "can go" to archived."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse, reverse_lazy
from django.utils import timezone

from flagadmin.core.errors import InvalidOperation
from groups.console import ActionPage, Column, Filter, ListPage, Permission
from playground.engine.outcomes import State
from playground.stale.queries import (
    Proof,
    find_candidates,
    list_reasons,
    make_proof_document,
    prove_flags,
    write_task,
)
from projects.access import access_flag
from projects.console import flag_url
from projects.flags.lifecycle.actions import complete_flag, uncomplete_flag
from projects.models import Flag, Project

PER_PAGE = 20
DISCARDED, KEPT = "discarded", "kept"


@dataclass(frozen=True, slots=True)
class Row:
    """A flag, and the caller's possible next step."""

    proof: Proof
    url: str
    keep: str
    task: str
    may_complete: bool
    may_archive: bool
    archive: str


class StaleFlagsPage(ListPage):
    template_name = "stale/stale_flags.html"
    title = "Stale flags"
    csv_name = "stale-flags"
    per_page = PER_PAGE
    columns = (
        Column("flag", "Flag"),
        Column("why", "Reason"),
        Column("gets", "Result"),
        Column("seen", "Last evaluated"),
        Column("next", "Action"),
    )
    api_call = "GET /api/admin/stale-flags"

    def get_filters(self) -> Sequence[Filter]:
        projects = Project.objects.readable_by(self.caller).active().order_by("name")
        return (Filter("project", "Project", [(row.pk, row.name) for row in projects]),)

    def get_rows(self, values: dict[str, str]) -> QuerySet[Flag]:
        self.now = timezone.now()
        self.reasons = list_reasons(self.now)
        flags = Flag.objects.readable_by(self.caller).select_related("project")
        if values["project"]:
            flags = flags.filter(project=values["project"])
        return find_candidates(flags, self.reasons)

    def prove(self, flags: Sequence[Flag]) -> list[Proof]:
        return prove_flags(flags, self.reasons, now=self.now, caller=self.caller)

    def get_csv_lines(self, rows: Any) -> Any:
        for proof in self.prove(list(rows[:1_000])):
            document = make_proof_document(proof)
            gets = "; ".join(f"{name}: {words}" for name, words in document["everybodyGets"].items())
            yield (
                proof.flag.name,
                "; ".join(proof.why),
                gets,
                proof.last_seen or "",
                document["canLeaveTheCode"],
            )

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        proofs = self.prove(list(kwargs["listing"].rows))
        return super().get_context_data(rows=[self.row(proof) for proof in proofs], **kwargs)

    def row(self, proof: Proof) -> Row:
        flag, kept = proof.flag, proof.kept
        keep = "" if kept is None else kept.variant or ("on" if kept.state is State.ON else "off")
        may = {
            permission: self.caller.can(permission, project=flag.project_id)
            for permission in (Permission.UPDATE_FEATURE, Permission.DELETE_FEATURE)
        }
        archive = urlencode({"name": flag.name, "next": self.request.get_full_path()})
        return Row(
            proof,
            flag_url(flag.project_id, flag.name),
            keep,
            write_task(proof),
            may[Permission.UPDATE_FEATURE] and kept is not None,
            may[Permission.DELETE_FEATURE] and proof.can_be_archived,
            f"{reverse('all-flags-archive')}?{archive}",
        )


class Complete(ActionPage):
    """Marks a flag as completed, with its result for everyone in production as the code to keep."""

    success_url = reverse_lazy("stale-flags")

    def act(self) -> str:
        flag = access_flag(self.caller, self.kwargs["project_id"], self.kwargs["name"], archived=False)
        if "undo" in self.request.POST:
            uncomplete_flag(flag.project_id, flag.name, caller=self.caller)
            return f"{flag.name} is no longer marked as completed."
        now = timezone.now()
        [proof] = prove_flags([flag], list_reasons(now), now=now, caller=self.caller)
        if proof.kept is None:
            raise InvalidOperation(f"Not everybody gets the same result from {flag.name} in production.")
        status = KEPT if proof.kept.state is State.ON else DISCARDED
        complete_flag(
            flag.project_id, flag.name, status=status, status_value=proof.kept.variant, caller=self.caller
        )
        return f"Marked {flag.name} as completed. Remove it from the code, then archive it."
