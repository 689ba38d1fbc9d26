"""The pages that add and edit a strategy of a flag: …/strategies/new and …/strategies/edit."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import cached_property
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks.override import STEPS, WHEN
from flagadmin.core.errors import InvalidOperation
from groups.console import read_next_page
from groups.permissions import Permission
from playground.engine.definitions import StrategyDefinition
from playground.engine.strategy_types import FLEXIBLE_ROLLOUT, STRATEGY_TYPES
from projects.access import access_flag, access_strategy, find_project_environment
from projects.console import OnFlagPage, api_path, flag_url
from projects.drafts import FlagEdit, draft_plan
from projects.flags.insights.evaluations import describe_usage
from projects.flags.queries import read_strategy_documents
from projects.history.field_changes import FieldChange
from projects.history.queries import readable_events
from projects.models import FlagEnvironment, ProjectEnvironment, Strategy
from projects.states import get_content
from projects.strategies.actions import (
    add_strategy,
    remove_strategy,
    update_for_some,
    update_strategy,
)
from projects.strategies.constraint_forms import clean_constraints
from projects.strategies.editor import (
    SharedStrategyEditor,
    StrategyEditor,
    describe_whole_strategy,
    find_percentage,
    list_type_choices,
)
from projects.strategies.fields import drop_sort_order
from projects.strategies.planned import PlannedFlag, check_strategy
from projects.strategies.rules import StrategyDefaults, make_default_strategy, make_strategy
from projects.strategies.sentences import Summary

ON_FOR_EVERYONE = "default"  # the strategy type without parameters
REST_SHOWN = "rest-shown"  # the form's: whether it asks about the old strategy
MAX_COPIES = 30  # environments to copy a strategy to


class StrategyPage(OnFlagPage, StrategyEditor):
    """Base class of both pages."""

    def find(self) -> None:
        """Loads the flag, environment and stored strategy that the URL names. Raises NotFound."""
        self.flag = access_flag(self.caller, *self.place, archived=False)
        self.project_id = self.flag.project_id
        self.environment = self.request.GET.get("environmentId", "")
        self.home = flag_url(self.project_id, self.flag.name)
        self.key = (self.project_id, self.flag.name, self.environment)
        find_project_environment(self.project_id, self.environment)
        self.stored = self.get_stored_document()

    def get_stored_document(self) -> StrategyDefinition:
        raise NotImplementedError

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        return check_strategy(self.flag, document)

    def get_edits(self) -> list[FlagEdit]:
        self.find()
        return list(draft_plan([self.flag], self.environment, self.plan, caller=self.caller))

    def plan(self, planned: PlannedFlag) -> None:
        """Plans saving the form."""
        raise NotImplementedError

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        usage = describe_usage(self.flag.pk, self.environment)
        return super().get_context_data(flag=self.flag, **usage, **kwargs)

    @property
    def starts_steps(self) -> bool:
        return self.request.POST.get(WHEN) == STEPS

    def strategies(self) -> list[str]:
        """The ids of the flag's strategies in the environment, in order."""
        rows = Strategy.objects.filter(flag=self.flag, environment=self.environment)
        return [
            str(pk) for pk in rows.order_by("sort_order", "created_at", "pk").values_list("pk", flat=True)
        ]

    @property
    def api_address(self) -> str:
        return f"{api_path(self.project_id, self.flag.name)}/environments/{self.environment}/strategies"


class EditStrategyPage(SharedStrategyEditor, StrategyPage):
    api_call = "PUT {page.api_address}/{page.strategy.pk}"

    def find(self) -> None:
        super().find()
        self.note_version()

    def get_events(self) -> QuerySet[AuditEvent]:
        events = readable_events(self.caller)
        return events.filter(project=self.project_id, feature=self.flag.name, environment=self.environment)

    def get_current_document(self) -> dict[str, Any]:
        return drop_sort_order(self.stored)

    def sentences_now(self) -> list[Summary | str]:
        return describe_whole_strategy(self.get_stored_document())

    def find_strategy(self) -> Strategy:
        return access_strategy(self.flag, self.environment, self.request.GET.get("strategyId", ""))

    def get_stored_document(self) -> StrategyDefinition:
        self.strategy = self.find_strategy()
        scope = {"project": self.project_id, "environment": self.environment}
        self.may_delete = self.caller.can(Permission.DELETE_FEATURE_STRATEGY, **scope)
        [document] = read_strategy_documents([self.strategy])
        return document

    def shown(self) -> StrategyDefinition:
        """A strategy that is on for everyone is shown as a rollout to 100 %, so that the percentage can be changed."""
        if self.document["name"] != ON_FOR_EVERYONE:
            return self.document
        return {**self.document, "name": FLEXIBLE_ROLLOUT, "parameters": self.everyone}

    @property
    def everyone(self) -> dict[str, str]:
        stickiness = self.flag.project.default_stickiness
        return {"rollout": "100", "stickiness": stickiness, "groupId": self.flag.name}

    def read(self) -> None:
        super().read()
        is_kept = self.document["parameters"] == self.everyone
        if self.stored["name"] == ON_FOR_EVERYONE and is_kept:
            unchanged = {"name": ON_FOR_EVERYONE, "parameters": self.stored["parameters"]}
            self.document = self.document | unchanged  # type: ignore[assignment]

    def new_document(self) -> StrategyDefinition:
        """In steps, an unchanged strategy starts over with the first step."""
        document = super().new_document()
        if not self.starts_steps or self.changes(document):
            return document
        first = self.request.POST.get("rollouts", "").partition(",")[0].strip()
        shown = self.shown()
        return {**document, "name": shown["name"], "parameters": shown["parameters"] | {"rollout": first}}

    def save(self, document: StrategyDefinition) -> str:
        update = update_for_some if self.keeps_rest else update_strategy
        expected = self.version.expected
        update(*self.key, str(self.strategy.pk), document, expected=expected, caller=self.caller)
        return f"Changed a strategy of {self.flag.name} in {self.environment}."

    def check(self, document: StrategyDefinition) -> StrategyDefinition:
        return check_strategy(self.flag, document, stored=self.stored)

    def plan(self, planned: PlannedFlag) -> None:
        key = str(self.strategy.pk)
        if self.is_deleting:
            planned.remove_strategy(key)
            return
        document = self.entered() | {"title": self.stored["title"]}  # which changes nobody
        planned.edit_strategy(key, lambda stored: document)
        if self.keeps_rest:
            planned.add_strategy(self.stored)

    @property
    def keeps_rest(self) -> bool:
        """Whether to keep the old strategy as well, for users whom new conditions exclude.

        Unless the form has asked, it does if nobody it is on for would lose the flag by it.
        """
        form = self.request.POST
        if REST_SHOWN in form or "keep-rest" in form or form.get("do", "save") == "save":
            return "keep-rest" in form and self.may_keep_rest
        before, after = find_percentage(self.stored), find_percentage(self.document)
        return self.may_keep_rest and before is not None and after is not None and before < after

    @cached_property
    def may_keep_rest(self) -> bool:
        scope = {"project": self.project_id, "environment": self.environment}
        before, after = (
            {**each, "constraints": clean_constraints(each["constraints"])}
            for each in (self.stored, self.document)
        )
        narrows = any(before[key] != after[key] for key in ("constraints", "segments"))
        return narrows and self.caller.can(Permission.CREATE_FEATURE_STRATEGY, **scope)

    def changes(self, document: StrategyDefinition) -> list[FieldChange]:
        changes = super().changes(document)
        if self.keeps_rest:
            changes.append(FieldChange("Added strategy", None, str(describe_whole_strategy(self.stored)[0])))
        return changes

    def remove(self) -> str:
        was_on = self.switched_on()
        remove_strategy(*self.key, str(self.strategy.pk), caller=self.caller)
        text = f"Deleted a strategy of {self.flag.name} in {self.environment}."
        if was_on and not self.switched_on():
            text += f" It was the last active strategy, so {self.flag.name} is now off there."
        return text

    def switched_on(self) -> bool:
        states = FlagEnvironment.objects.filter(flag=self.flag, environment=self.environment)
        return states.filter(enabled=True).exists()

    def get_title(self) -> str:
        number = self.strategies().index(str(self.strategy.pk)) + 1
        if find_percentage(self.stored) is None:
            return f"Strategy {number} in {self.environment}"
        return f"Roll out {self.flag.name} in {self.environment}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            button="Save now",
            copies=self.copies(),
            rest=describe_whole_strategy(self.stored)[0] if self.may_keep_rest else "",
            keeps_rest=self.keeps_rest,
            delete_button="Delete strategy",
            deletion=self.what_goes() if self.may_delete else "",
            **kwargs,
        )

    def copies(self) -> list[tuple[str, str]]:
        """The other environments in which the caller may add a copy, each with the URL of its form."""
        rows = ProjectEnvironment.objects.filter(project=self.project_id).exclude(
            environment=self.environment
        )
        names = rows.order_by("environment").values_list("environment", flat=True)
        create, address = Permission.CREATE_FEATURE_STRATEGY, flag_url(*self.key[:2], "strategy-new")
        copy = {"copy": self.strategy.pk, "from": self.environment}
        return [
            (name, f"{address}?{urlencode({'environmentId': name} | copy)}")
            for name in names[:MAX_COPIES]
            if self.caller.can(create, project=self.project_id, environment=name)
        ]

    def what_goes(self) -> str:
        """Describes the effect of deleting the strategy on the flag in the environment."""
        others = Strategy.objects.filter(flag=self.flag, environment=self.environment, disabled=False)
        if self.strategy.disabled or others.exclude(pk=self.strategy.pk).exists():
            return f"The remaining strategies apply to {self.flag.name} in {self.environment}."
        if self.switched_on():
            return f"It is the last active strategy: {self.flag.name} will be off in {self.environment}."
        return f"{self.flag.name} has no other in use in {self.environment}; it is off there."

    def get_api_body(self) -> Any:
        return get_content(self.stored)


class SharePage(EditStrategyPage):
    """Changes only the percentage of a flag with one enabled strategy: below its row in a list, or as a page."""

    title = "Change the share of {name} in {page.environment}"

    def find_strategy(self) -> Strategy:
        """Raises InvalidOperation, NotFound."""
        rows = Strategy.objects.filter(flag=self.flag, environment=self.environment, disabled=False)
        if len(ids := list(rows.values_list("pk", flat=True)[:2])) == 1:
            strategy = access_strategy(self.flag, self.environment, str(ids[0]))
            if find_percentage(read_strategy_documents([strategy])[0]) is not None:
                return strategy
        raise InvalidOperation(
            f"{self.flag.name} has no single strategy with a percentage in {self.environment}. "
            "Change its strategies on the page of the flag."
        )

    def get_template_names(self) -> list[str]:
        by_script = "row" in self.request.GET and "HX-Request" in self.request.headers
        return ["flags/toggle_row.html" if by_script else "flags/share.html"]

    def read(self) -> None:
        self.document, share = self.stored, self.request.POST.get("share", "").strip()
        if share != str(find_percentage(self.stored)):
            shown = self.shown()
            percentage = STRATEGY_TYPES[shown["name"]].percentage
            self.document = {**shown, "parameters": shown["parameters"] | {percentage: share}}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Below a row, errors are messages."""
        answer = super().post(request, *args, **kwargs)
        if answer.status_code < 400 or "HX-Request" not in request.headers:
            return answer
        problems = [problem.message for problem in self.problems]
        messages.error(request, ". ".join(problems) or (self.refusal.message if self.refusal else ""))
        return HttpResponseClientRedirect(self.get_success_url())

    def get_success_url(self) -> str:
        return read_next_page(self.request) or self.home

    def get_title(self) -> str:
        return self.title.format(page=self, **self.kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        label = f"Change in {self.environment}"
        return super().get_context_data(share=find_percentage(self.stored), save_label=label, **kwargs)


class NewStrategyPage(StrategyPage):
    """``?copy=ID&from=ENVIRONMENT`` begins with a copy of that strategy of the flag, ``?userId=`` with one user's."""

    title = "New strategy in {page.environment}"
    permissions = (Permission.CREATE_FEATURE_STRATEGY,)
    is_new = True
    api_call = "POST {page.api_address}"

    @cached_property
    def kept(self) -> StrategyDefinition:
        """The strategy to copy, or the default strategy of the project environment."""
        if copied := self.request.GET.get("copy"):
            strategy = access_strategy(self.flag, self.request.GET.get("from", ""), copied)
            return read_strategy_documents([strategy])[0]
        if user := self.request.GET.get("userId"):
            named = {"contextName": "userId", "operator": "IN", "values": [user]}
            return make_strategy({"name": "flexibleRollout", "constraints": [named]}, self.defaults)
        project_environment = find_project_environment(self.project_id, self.environment)
        return make_default_strategy(project_environment.default_strategy, self.defaults)

    @property
    def defaults(self) -> StrategyDefaults:
        return StrategyDefaults(flag=self.flag.name, stickiness=self.flag.project.default_stickiness)

    def plan(self, planned: PlannedFlag) -> None:
        planned.add_strategy(self.entered())

    def get_stored_document(self) -> StrategyDefinition:
        """The initial strategy of the form, or an empty one of the chosen type."""
        name = self.request.POST.get("name") or self.request.GET.get("name")
        if name and name != self.kept["name"]:
            return make_strategy({"name": name}, self.defaults)
        return self.kept

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.caller.check_any(self.permissions, project=self.project_id, environment=self.environment)
        return super().get(request, *args, **kwargs)

    def save(self, document: StrategyDefinition) -> str:
        add_strategy(*self.key, document, caller=self.caller)
        return f"Added a strategy to {self.flag.name} in {self.environment}."

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(button="Add now", types=list_type_choices(), **kwargs)
