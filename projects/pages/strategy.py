"""…/strategies/edit?environmentId=…&strategyId=… and …/strategies/new?environmentId=…: one strategy.

Every button of the form sends all of it: "do" says what for. Nothing but "save" and "delete" writes.
"""

import re
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme

from flagadmin.errors import AppError, NotFound, Problem, ValidationError
from flagadmin.pages import curl_for
from groups.pages.base import ConsolePage
from groups.permissions import Permission
from projects.access import access_flag
from projects.actions.strategies import (
    access_strategy,
    add_strategy,
    checked_strategy,
    remove_strategy,
    update_strategy,
)
from projects.actions.switching import project_environment
from projects.documents.flags import strategy_documents
from projects.models import StrategyType
from projects.pages.base import api_path, flag_url, project_url
from projects.pages.constraint_rows import NEW, Words, operator_choices, stored_constraints
from projects.pages.strategy_form import given_strategy, strategy_inputs
from projects.pages.variant_rows import NEW as NEW_VARIANT
from projects.pages.variant_rows import PAYLOAD_TYPES
from projects.strategy_sentences import strategy_sentence, variants_sentence
from projects.validation import (
    default_strategy_document,
    strategy_document,
    strategy_warnings,
    variants_document,
)
from projects.validation.strategies import StrategyDefaults

Document = dict[str, Any]
_REMOVE = re.compile(r"remove-(constraint|variant)-(\d{1,4})")


class StrategyPage(ConsolePage):
    """Common to both: ``document`` is the strategy as the form has it at the moment."""

    template_name = "projects/strategy.html"
    permission = Permission.UPDATE_FEATURE_STRATEGY

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.problems: list[Problem] = []
        self.refusal: AppError | None = None
        return super().dispatch(request, *args, **kwargs)

    def find(self) -> None:
        """Flag, environment and stored strategy of the address. Raises NotFound."""
        self.flag = access_flag(self.caller, self.kwargs["project_id"], self.kwargs["name"], archived=False)
        self.environment = self.request.GET.get("environmentId", "")
        project_environment(self.flag.project_id, self.environment)
        self.stored = self.stored_document()
        self.document = self.stored
        here = {"project": self.flag.project_id, "environment": self.environment}
        self.locked = not self.caller.can(self.permission, **here)
        self.may_delete = self.caller.can(Permission.DELETE_FEATURE_STRATEGY, **here)

    def stored_document(self) -> Document:
        raise NotImplementedError

    def save(self, document: Document) -> str:
        """Calls the action; answers what was done."""
        raise NotImplementedError

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        return self.render_to_response(self.get_context_data(**kwargs))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.caller.check(self.permission, project=self.flag.project_id, environment=self.environment)
        self.document, self.problems = given_strategy(request.POST, self.stored)
        do = request.POST.get("do", "save")
        if do == "save":
            return self.try_to_save()
        self.change_rows(do)
        return self.render_to_response(self.get_context_data(**kwargs))

    def try_to_save(self) -> HttpResponseBase:
        wanted = self.wanted()
        self.problems += strategy_warnings(wanted, "")
        if not self.problems:
            try:
                messages.success(self.request, self.save(wanted))
                return HttpResponseRedirect(self.back())
            except NotFound:
                raise
            except AppError as error:
                self.problems, self.refusal = list(error.details), error
        status = self.refusal.status if self.refusal else 400
        return self.render_to_response(self.get_context_data(), status=status)

    def wanted(self) -> Document:
        """What would be stored."""
        return self.document | {"constraints": stored_constraints(self.document["constraints"])}

    def change_rows(self, do: str) -> None:
        if do == "add-constraint":
            self.document["constraints"].append(dict(NEW))
        elif do == "add-variant":
            self.document["variants"].append(dict(NEW_VARIANT))
        elif found := _REMOVE.fullmatch(do):
            rows = self.document[f"{found[1]}s"]
            if int(found[2]) < len(rows):
                del rows[int(found[2])]

    def back(self) -> str:
        """Where one came from, if that was the playground; else the flag's page."""
        came = self.request.POST.get("next") or self.request.headers.get("Referer", "")
        address = came.removeprefix(f"{self.request.scheme}://{self.request.get_host()}")
        ours = url_has_allowed_host_and_scheme(address, allowed_hosts=None)
        return address if ours and address.startswith("/playground/") else self.flag_url

    @property
    def flag_url(self) -> str:
        return flag_url(self.flag.project_id, self.flag.name)

    def faults(self, wanted: Document) -> list[str]:
        """What stands against saving the form as it is."""
        try:
            checked_strategy(self.flag, wanted)
        except ValidationError as error:
            return [problem.message for problem in error.details] or [error.message]
        return [problem.message for problem in strategy_warnings(wanted, "")]

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        inputs = strategy_inputs(self.flag, self.document, problems=self.problems)
        wanted = self.wanted()
        names = {segment.pk: segment.name for segment, _ in inputs.segments}
        title = self.permission.display
        return super().get_context_data(
            inputs=inputs,
            sentence=strategy_sentence(wanted, segments=names),
            variants_sentence=variants_sentence(variants_document(wanted["variants"])),
            faults=self.faults(wanted) if self.request.method == "POST" else [],
            refusal=self.refusal if self.refusal and not self.refusal.details else None,
            operators=operator_choices(),
            fields=Words.of(self.flag.project_id).names,
            payload_types=PAYLOAD_TYPES,
            environment=self.environment,
            locked=f'You need "{title[:1].lower()}{title[1:]}" in {self.flag.project_id} / {self.environment}.'
            if self.locked
            else "",
            back=self.back(),
            **kwargs,
        )

    def crumbs(self) -> Sequence[tuple[str, str]]:
        project, name = self.flag.project_id, self.flag.name
        return (("Projects", "/projects/"), (project, project_url(project)), (name, self.flag_url))

    def api_address(self) -> str:
        flag = api_path(self.flag.project_id, self.flag.name)
        return f"{flag}/environments/{self.environment}/strategies"


class EditStrategyPage(StrategyPage):
    def stored_document(self) -> Document:
        self.strategy = access_strategy(self.flag, self.environment, self.request.GET.get("strategyId", ""))
        [document] = strategy_documents([self.strategy])
        return document

    def save(self, document: Document) -> str:
        place = (self.flag.project_id, self.flag.name, self.environment, str(self.strategy.pk))
        update_strategy(*place, document, caller=self.caller)
        return f"Changed a strategy of {self.flag.name} in {self.environment}."

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.POST.get("do") != "delete":
            return super().post(request, *args, **kwargs)
        self.find()
        place = (self.flag.project_id, self.flag.name, self.environment, str(self.strategy.pk))
        remove_strategy(*place, caller=self.caller)
        messages.success(request, f"Deleted a strategy of {self.flag.name} in {self.environment}.")
        return HttpResponseRedirect(self.flag_url)

    def get_title(self) -> str:
        return f"Strategy of {self.flag.name} in {self.environment}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(button="Save strategy", may_delete=self.may_delete, **kwargs)

    def curl(self) -> str:
        body = {key: value for key, value in self.stored.items() if key not in ("id", "sortOrder")}
        return curl_for(self.request, "PUT", f"{self.api_address()}/{self.strategy.pk}", body)


class NewStrategyPage(StrategyPage):
    permission = Permission.CREATE_FEATURE_STRATEGY

    def stored_document(self) -> Document:
        """The project environment's default strategy, or an empty one of the type that was chosen."""
        defaults = StrategyDefaults(flag=self.flag.name, stickiness=self.flag.project.default_stickiness)
        place = project_environment(self.flag.project_id, self.environment)
        name = self.request.POST.get("name") or self.request.GET.get("name")
        default = default_strategy_document(place.default_strategy, defaults)
        if name and name != default["name"]:
            return strategy_document({"name": name}, defaults)
        return default

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        self.find()
        self.caller.check(self.permission, project=self.flag.project_id, environment=self.environment)
        return self.render_to_response(self.get_context_data(**kwargs))

    def save(self, document: Document) -> str:
        place = (self.flag.project_id, self.flag.name, self.environment)
        add_strategy(*place, document, caller=self.caller)
        return f"Added a strategy to {self.flag.name} in {self.environment}."

    def get_title(self) -> str:
        return f"New strategy of {self.flag.name} in {self.environment}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kinds = StrategyType.objects.filter(deprecated=False)
        types = [(kind.name, kind.title or kind.name) for kind in kinds]
        return super().get_context_data(button="Add strategy", types=types, **kwargs)

    def curl(self) -> str:
        body = {key: self.stored[key] for key in ("name", "parameters", "constraints", "segments")}
        return curl_for(self.request, "POST", self.api_address(), body)


STRATEGIES = "projects/<str:project_id>/features/<str:name>/strategies"
urlpatterns = [
    path(f"{STRATEGIES}/edit", EditStrategyPage.as_view(), name="strategy-edit"),
    path(f"{STRATEGIES}/new", NewStrategyPage.as_view(), name="strategy-new"),
]
