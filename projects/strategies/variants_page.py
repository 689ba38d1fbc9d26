"""…/variants?environmentId=…: the page that edits a flag's environment variants."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts.forms import EditConflictMixin
from flagadmin.core.errors import AppError, EditConflict, NotFound, Problem
from flagadmin.core.unreadable_values import check_values, list_refused_problems
from groups.console import Permission, SubmitPage
from playground.engine.definitions import VariantDefinition
from projects.access import access_flag, find_project_environment
from projects.console import OnFlagPage, flag_url
from projects.drafts import DraftingPage, FlagEdit, draft_plan
from projects.flags.environments.actions import read_variants, set_variants
from projects.flags.insights.evaluations import describe_usage
from projects.history.field_changes import FieldChange
from projects.history.queries import readable_events
from projects.models import Strategy
from projects.projects.required_comments import requires_comment
from projects.reverts.change_plan import tell_done
from projects.strategies.forms import list_stickiness_choices, share_out_weights, sort_problems
from projects.strategies.planned import PlannedFlag
from projects.strategies.rules import PAYLOAD_TYPES, make_variants, variants_problems
from projects.strategies.sentences import describe_variants
from projects.strategies.variant_forms import (
    change_variants,
    convert_to_percent,
    make_variant_rows,
    read_variant_rows,
)


class VariantsPage(OnFlagPage, EditConflictMixin, DraftingPage, SubmitPage):
    title = "Variants of {page.flag.name} in {page.environment}"
    template_name = "strategies/flag_variants.html"
    restores = True
    passes = (NotFound,)
    shown_by = "post"
    api_call = "PUT /api/admin/projects/{project_id}/features/{name}/environments/{page.environment}/variants"

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        self.flag = access_flag(self.caller, *self.place, archived=False)
        self.environment = self.request.GET.get("environmentId", "")
        project_environment = find_project_environment(self.flag.project_id, self.environment)
        self.is_production = project_environment.environment.is_production
        self.needs_request = project_environment.required_approvals is not None
        permission = Permission.UPDATE_FEATURE_ENVIRONMENT_VARIANTS
        self.caller.check(permission, project=self.flag.project_id, environment=self.environment)
        self.stored = read_variants(self.flag, self.environment)
        self.variants: list[Any] = list(self.stored)
        self.problems: list[Problem] = []
        self.asking = False  # whether the page asks to confirm
        self.note_version()

    def get_events(self) -> QuerySet[AuditEvent]:
        flag = self.flag
        events = readable_events(self.caller)
        return events.filter(project=flag.project_id, feature=flag.name, environment=self.environment)

    def get_current_document(self) -> list[VariantDefinition]:
        return self.stored

    def sentences_now(self) -> list[str]:
        return [summarize_variants(read_variants(self.flag, self.environment))]

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.variants, problems = read_variant_rows(request.POST, self.stored)
        self.problems = list_refused_problems(problems)
        do = request.POST.get("do", "save")
        if do == "save" and not self.problems:
            return self.try_to_submit()
        change_variants(self.variants, do)
        return self.render_to_response(self.get_context_data(), status=400 if do == "save" else 200)

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        self.variants, self.problems = read_variant_rows(self.request.POST, self.stored)
        check_values([*self.problems, *variants_problems(self.variants, "")])

        def plan(planned: PlannedFlag) -> None:
            planned.edit_variants(lambda stored: self.variants)

        return list(draft_plan([self.flag], self.environment, plan, caller=self.caller))

    def ask_first(self) -> HttpResponseBase | None:
        if not self.needs_confirmation():
            return None
        check_values(variants_problems(self.variants, ""))
        self.check_version()
        self.asking = True
        return self.render_to_response(self.get_context_data())

    def submit(self) -> str:
        key = (self.flag.project_id, self.flag.name, self.environment)
        set_variants(*key, self.variants, expected=self.version.expected, caller=self.caller)
        done = f"Changed the variants of {self.flag.name} in {self.environment}."
        tell_done(self.request, done, caller=self.caller)
        return flag_url(*self.place)

    def refuse(self, error: AppError) -> HttpResponseBase:
        if isinstance(error, EditConflict):
            self.show_conflict(error)
            return super().refuse(error)
        self.problems = convert_to_percent([], self.variants) or [Problem("", error.message)]
        return self.render_to_response(self.get_context_data(), status=error.status)

    def needs_confirmation(self) -> bool:
        """Whether to show the effect first: in production, and if changes need a request."""
        changed = make_variants(self.variants, self.stored) != self.stored
        asks = self.is_production or self.needs_request
        return asks and changed and "confirmed" not in self.request.POST

    def describe_change(self) -> dict[str, Any]:
        """Describes the change for the confirmation before saving."""
        after = make_variants(self.variants, self.stored)
        texts = [
            describe_variants(variants).removeprefix("Variants: ") or None
            for variants in (self.stored, after)
        ]
        return {
            "button": f"Save variants to {self.environment}",
            "changes": [FieldChange("Variants", *texts)],
            "flag": self.flag,
            "comment_required": requires_comment([self.flag.project_id], [self.environment]),
        } | describe_usage(self.flag.pk, self.environment)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        by_place, _, others = sort_problems(self.problems)
        first = self.variants[0] if self.variants else {}
        inputs = {
            "stickiness": list_stickiness_choices(self.flag.project_id),
            "variants_stickiness": first.get("stickiness", "default"),
        }
        strategies = Strategy.objects.filter(flag=self.flag, environment=self.environment)
        own = strategies.order_by("sort_order", "created_at", "pk").values_list("variants", flat=True)
        return super().get_context_data(
            may_set_schema=self.caller.can(Permission.UPDATE_FEATURE, project=self.flag.project_id),
            own=[
                (number, describe_variants(variants).removeprefix("Variants: "))
                for number, variants in enumerate(own, 1)
                if variants
            ],
            rows=make_variant_rows(
                share_out_weights(self.variants, self.stored), self.stored, by_place["variants"]
            ),
            inputs=inputs,
            payload_types=PAYLOAD_TYPES,
            sentence=summarize_variants(make_variants(self.variants, self.stored)),
            errors=others,
            back=flag_url(*self.place),
            is_production=self.is_production,
            needs_request=self.needs_request,
            asking=self.asking,
            added=self.request.POST.get("do", ""),
            **(self.describe_change() if self.asking else {}),
            **kwargs,
        )

    def get_api_body(self) -> Any:
        return self.stored


def summarize_variants(variants: Sequence[VariantDefinition]) -> str:
    return describe_variants(variants) or "No variants."
