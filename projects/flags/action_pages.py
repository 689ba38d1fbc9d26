"""Handles the small forms on a flag's page: favourite, stale, impression data, tags, parents, links, order."""

from typing import Any

from flagadmin.errors import ValidationError
from projects.access import access_flag
from projects.console import ActionPage, flag_url
from projects.drafts import Draft, Drafting, FlagEdit, enabled_places
from projects.flags.actions import update_flag
from projects.flags.dependencies import add_dependency, checked_parent, remove_dependency
from projects.flags.links import add_link, remove_link
from projects.flags.queries import dependency_documents
from projects.flags.strategy_lines import moved
from projects.flags.tags import change_tags
from projects.projects.favourites import set_flag_favourite
from projects.strategies.actions import order_strategies


class FlagAction(ActionPage):
    """An action on the flag named in the URL."""

    @property
    def place(self) -> tuple[str, str]:
        return self.kwargs["project_id"], self.kwargs["name"]

    def given(self, name: str) -> str:
        return self.request.POST.get(name, "").strip()

    def back(self) -> str:
        return flag_url(*self.place)


class Favourite(FlagAction):
    def act(self) -> str:
        wanted = self.given("favourite") == "on"
        set_flag_favourite(*self.place, wanted, caller=self.caller)
        return f"{self.place[1]} is {'now' if wanted else 'no longer'} one of your favourites."


class Stale(FlagAction):
    def act(self) -> str:
        stale = self.given("stale") == "yes"
        update_flag(*self.place, {"stale": stale}, caller=self.caller)
        return f"Marked {self.place[1]} as {'stale' if stale else 'not stale'}."


class ImpressionData(FlagAction):
    def act(self) -> str:
        wanted = self.given("impression_data") == "on"
        update_flag(*self.place, {"impression_data": wanted}, caller=self.caller)
        return f"Turned {'on' if wanted else 'off'} impression data of {self.place[1]}."


class Tags(FlagAction):
    """``do`` is "add" or "remove"; ``type`` and ``value`` identify the tag."""

    def act(self) -> str:
        project_id, name = self.place
        access_flag(self.caller, project_id, name)
        tag = (self.given("type"), self.given("value"))
        if self.given("do") == "remove":
            change_tags(name, [], [tag], caller=self.caller)
            return f"Removed the tag {':'.join(tag)}."
        change_tags(name, [tag], caller=self.caller)
        return f"Tagged {name} with {':'.join(tag)}."


class Parents(Drafting, FlagAction):
    """Adds or removes a parent. ``state`` is "on" or "off"; ``variants`` are names separated by commas."""

    unchanged = "Nobody changes: the flag is off in every environment."

    def act(self) -> str:
        name, parent = self.place[1], self.parent()
        if self.given("do") == "remove":
            remove_dependency(*self.place, parent, caller=self.caller)
            return f"{name} no longer depends on {parent}."
        add_dependency(*self.place, self.wanted(), caller=self.caller)
        return f"{name} now depends on {parent}."

    def parent(self) -> str:
        if not (parent := self.given("feature")):
            raise ValidationError("Enter the flag it depends on.")
        return parent

    def wanted(self) -> dict[str, Any]:
        """The dependency that the form adds."""
        variants = [text.strip() for text in self.given("variants").split(",") if text.strip()]
        return {"feature": self.parent(), "enabled": self.given("state") != "off", "variants": variants}

    def edits(self) -> list[FlagEdit]:
        flag = access_flag(self.caller, *self.place, archived=False)
        added = checked_parent(flag, self.wanted(), caller=self.caller)
        parents = {each["feature"]: each for each in dependency_documents([flag.pk])[flag.pk]}
        draft = Draft(flag.name, {"dependencies": [*(parents | {added["feature"]: added}).values()]})
        return [
            FlagEdit(flag.project_id, name, environment, draft)
            for name, environment in enabled_places([flag])
        ]


class Links(FlagAction):
    """``do`` is "remove" for the link with this ``id``; anything else adds a link."""

    def act(self) -> str:
        if self.given("do") == "remove":
            remove_link(*self.place, self.given("id"), caller=self.caller)
            return "Removed the link."
        add_link(*self.place, self.given("url"), self.given("title") or None, caller=self.caller)
        return f"Added the link {self.given('url')}."


class Order(FlagAction):
    """``order``: the ids of all strategies in the environment, separated by commas.

    ``move`` moves one of them a step: "up ID" or "down ID".
    """

    def act(self) -> str:
        environment = self.given("environment")
        order = moved(self.given("order").split(","), self.given("move"))
        places = [(identifier, index) for index, identifier in enumerate(order)]
        order_strategies(*self.place, environment, places, caller=self.caller)
        return f"Reordered the strategies in {environment}."
