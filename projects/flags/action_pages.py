"""Handles the small forms on a flag's page: favorite, stale, impression data, tags, parents, links, order."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect

from flagadmin.core.errors import ValidationError
from groups.console import Breadcrumbs, Permission
from projects.access import access_flag, find_project_environment
from projects.console import OnFlagPage, flag_url, get_flag_breadcrumbs
from projects.drafts import Draft, DraftingPage, FlagEdit, draft_plan, find_enabled_places
from projects.flags.actions import add_link, change_tags, remove_link, update_flag
from projects.flags.dependencies.actions import add_dependency, check_parent, no_parent, remove_dependency
from projects.flags.lists.strategy_lines import move_strategy
from projects.flags.queries import read_dependency_documents
from projects.models import Environment, Flag, Segment
from projects.projects.actions import set_flag_favorite
from projects.projects.queries import needs_request
from projects.projects.required_comments import requires_comment
from projects.reverts.change_plan import UndoableAction
from projects.strategies.actions import order_strategies
from projects.strategies.planned import PlannedFlag
from projects.strategies.sentences import summarize_strategy


class FlagAction(OnFlagPage, UndoableAction):
    """An action on the flag named in the URL."""

    def read_field(self, name: str) -> str:
        return self.request.POST.get(name, "").strip()

    def get_success_url(self) -> str:
        return flag_url(*self.place)


class Favorite(FlagAction):
    def act(self) -> str:
        is_favorite = self.read_field("favorite") == "on"
        set_flag_favorite(*self.place, is_favorite, caller=self.caller)
        return f"{self.place[1]} is {'now' if is_favorite else 'no longer'} one of your favorites."


class Stale(FlagAction):
    def act(self) -> str:
        stale = self.read_field("stale") == "yes"
        update_flag(*self.place, {"stale": stale}, caller=self.caller)
        return f"Marked {self.place[1]} as {'stale' if stale else 'not stale'}."


class ImpressionData(FlagAction):
    def act(self) -> str:
        is_on = self.read_field("impression_data") == "on"
        update_flag(*self.place, {"impression_data": is_on}, caller=self.caller)
        return f"Turned {'on' if is_on else 'off'} impression data of {self.place[1]}."


class Tags(FlagAction):
    """``do`` is "add" or "remove"; ``type`` and ``value`` identify the tag."""

    def act(self) -> str:
        project_id, name = self.place
        access_flag(self.caller, project_id, name)
        tag = (self.read_field("type"), self.read_field("value"))
        if self.read_field("do") == "remove":
            change_tags(name, [], [tag], caller=self.caller)
            return f"Removed the tag {':'.join(tag)}."
        change_tags(name, [tag], caller=self.caller)
        return f"Tagged {name} with {':'.join(tag)}."


class AsksFirst(DraftingPage, FlagAction):
    """An action that may change evaluations. For a production environment, a page first shows the affected users."""

    http_method_names = ["get", "post"]
    template_name = "flags/ask.html"
    shown_by = "get"
    fields: Sequence[str] = ()  # fields of the form that the page submits again

    def read_field(self, name: str) -> str:
        sent = self.request.POST if self.request.method == "POST" else self.request.GET
        return sent.get(name, "").strip()

    def find_flag(self) -> Flag:
        """The flag. Raises NotFound, NoAccess for callers without the permission."""
        raise NotImplementedError

    def asks(self) -> bool:
        """Whether this would change an evaluation in production, or in a place that needs a change request.

        Raises NotFound, NoAccess.
        """
        places = [edit.environment for edit in self.get_edits() if isinstance(edit, FlagEdit)]
        production = Environment.objects.production().filter(name__in=places)
        return production.exists() or (bool(places) and needs_request(self.kwargs["project_id"], places))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if "confirmed" not in request.POST and self.may_ask():
            return HttpResponseRedirect(f"{request.path}?{urlencode(self.values())}")
        return super().post(request, *args, **kwargs)

    def may_ask(self) -> bool:
        """Whether asking first is possible. Changes that cannot be saved are refused at once."""
        try:
            return self.asks()
        except ValidationError:
            return False

    def values(self) -> list[tuple[str, str]]:
        return [*((name, self.read_field(name)) for name in self.fields), ("next", self.get_redirect_url())]

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.find_flag())

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        required = requires_comment([self.kwargs["project_id"]])
        return super().get_context_data(
            environment=self.read_field("environment"),
            hidden=self.values(),
            back=self.get_redirect_url(),
            comment_required=required,
            **{"project_id": self.kwargs["project_id"]} | kwargs,
        )


class Parents(AsksFirst):
    """Adds or removes a parent. ``state`` is "on" or "off"; ``variants`` are names separated by commas."""

    unchanged = "Nobody changes: the flag is off in every environment."
    fields = ("do", "feature")

    def get_title(self) -> str:
        return f"Remove the dependency of {self.place[1]} on {self.read_field('feature')}"

    def find_flag(self) -> Flag:
        permission = Permission.UPDATE_FEATURE_DEPENDENCY
        return access_flag(self.caller, *self.place, archived=False, permission=permission)

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        stored = self.stored(self.find_flag())
        if not self.removes or self.parent() not in stored:
            return HttpResponseRedirect(self.get_redirect_url())
        return super().get(request, *args, **kwargs)

    def asks(self) -> bool:
        """Asks only before a removal, because the form for adding a parent already shows the effect."""
        return self.removes and self.parent() in self.stored(self.find_flag()) and super().asks()

    @property
    def removes(self) -> bool:
        return self.read_field("do") == "remove"

    def stored(self, flag: Flag) -> dict[str, Any]:
        return {dependency["feature"]: dependency for dependency in read_dependency_documents(flag)}

    def act(self) -> str:
        name, parent = self.place[1], self.parent()
        if self.removes:
            remove_dependency(*self.place, parent, caller=self.caller)
            return f"{name} no longer depends on {parent}."
        add_dependency(*self.place, self.wanted(), caller=self.caller)
        return f"{name} now depends on {parent}."

    def parent(self) -> str:
        if not (parent := self.read_field("feature")):
            raise ValidationError("Enter the flag it depends on.")
        return parent

    def wanted(self) -> dict[str, Any]:
        """The dependency that the form adds."""
        variants = [text.strip() for text in self.read_field("variants").split(",") if text.strip()]
        return {"feature": self.parent(), "enabled": self.read_field("state") != "off", "variants": variants}

    def get_edits(self) -> list[FlagEdit]:
        flag = access_flag(self.caller, *self.place, archived=False)
        parents = self.stored(flag)
        if self.removes and parents.pop(self.parent(), None) is None:
            raise no_parent(flag, self.parent())
        if not self.removes:
            added = check_parent(flag, self.wanted(), caller=self.caller)
            parents[added["feature"]] = added
        draft = Draft(flag.name, {"dependencies": [*parents.values()]})
        return [
            FlagEdit(flag.project_id, name, environment, draft)
            for name, environment in find_enabled_places([flag])
        ]


class Links(FlagAction):
    """``do`` is "remove" for the link with this ``id``; anything else adds a link."""

    def act(self) -> str:
        if self.read_field("do") == "remove":
            remove_link(*self.place, self.read_field("id"), caller=self.caller)
            return "Removed the link."
        add_link(*self.place, self.read_field("url"), self.read_field("title") or None, caller=self.caller)
        return f"Added the link {self.read_field('url')}."


class Order(AsksFirst):
    """``order``: the ids of all strategies in the environment, separated by commas.

    ``move`` moves one of them a step: "up ID" or "down ID".
    """

    unchanged = "Nobody changes: the flag is off there."
    fields = ("environment", "order", "move")

    def get_title(self) -> str:
        return f"Reorder the strategies of {self.place[1]} in {self.read_field('environment')}"

    def find_flag(self) -> Flag:
        project_id, environment = self.place[0], self.read_field("environment")
        permission = Permission.UPDATE_FEATURE_STRATEGY
        flag = access_flag(
            self.caller, *self.place, archived=False, permission=permission, environment=environment
        )
        find_project_environment(project_id, environment)
        return flag

    def order(self) -> dict[str, int]:
        """The position of each strategy by its id. Empty if no order is given: positions stay."""
        order = move_strategy(
            list(filter(None, self.read_field("order").split(","))), self.read_field("move")
        )
        return {identifier: index for index, identifier in enumerate(order)}

    def act(self) -> str:
        environment = self.read_field("environment")
        order_strategies(*self.place, environment, [*self.order().items()], caller=self.caller)
        return f"Reordered the strategies in {environment}."

    def draft(self, flag: Flag) -> FlagEdit:
        def plan(planned: PlannedFlag) -> None:
            planned.order_strategies(self.order().items())

        [edit] = draft_plan([flag], self.read_field("environment"), plan, caller=self.caller)
        return edit

    def get_edits(self) -> list[FlagEdit]:
        flag, environment = self.find_flag(), self.read_field("environment")
        return [self.draft(flag)] if (flag.name, environment) in find_enabled_places([flag]) else []

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        documents = self.draft(self.find_flag()).draft.changes["strategies"]
        names = dict(Segment.objects.values_list("pk", "name"))
        summaries = [summarize_strategy(document, segments=names) for document in documents]
        return super().get_context_data(summaries=summaries, **kwargs)
