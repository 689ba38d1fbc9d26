"""Console pages: the safeguards of a flag in an environment, and charts of impact metrics."""

from typing import Any

from django.utils import timezone

from flagadmin.core.lists.pages import curl_for
from groups.console import Breadcrumbs, Permission, SubmitPage
from projects.access import access_flag, find_project_environment
from projects.console import api_path, get_flag_breadcrumbs
from projects.models import Flag
from releases.plans.queries import OfFlagPath
from releases.safeguards.actions import (
    UPDATE_CHARTS,
    Owner,
    remove_chart,
    remove_flag_safeguard,
    set_chart,
    set_flag_safeguard,
)
from releases.safeguards.actions import UPDATE_FLAG as SWITCH
from releases.safeguards.chart import draw_metric
from releases.safeguards.forms import read_chart, read_flag_safeguard
from releases.safeguards.judge import Judge, find_places_on
from releases.safeguards.numbers import list_metrics
from releases.safeguards.queries import read_charts, read_safeguards, unapproved_safeguards
from releases.safeguards.rules import AGGREGATIONS, TIME_RANGES


class _ListPage(SubmitPage):
    """A list of rows, each with a button that removes it, and a form that adds one."""

    def add(self) -> str:
        """Returns a sentence about the result."""
        raise NotImplementedError

    def remove(self, key: str) -> str:
        raise NotImplementedError

    def submit(self) -> str:
        removed = self.request.POST.get("remove")
        return self.done(self.remove(removed) if removed else self.add(), self.request.path)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            aggregations=AGGREGATIONS, time_ranges=list(TIME_RANGES), metrics=list_metrics(), **kwargs
        )


class FlagSafeguardsPage(OfFlagPath, _ListPage):
    """The safeguards that turn a flag off in an environment, and whether they hold."""

    template_name = "plans/flag_safeguards.html"
    title = "Safeguards of {name} in {environment}"

    def find(self) -> None:
        self.flag = access_flag(self.caller, self.flag_path.project, self.flag_path.feature, archived=False)
        find_project_environment(self.flag_path.project, self.flag_path.environment)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.flag)

    def add(self) -> str:
        set_flag_safeguard(self.flag_path, read_flag_safeguard(self.request.POST), caller=self.caller)
        return "Added the safeguard."

    def remove(self, key: str) -> str:
        remove_flag_safeguard(self.flag_path, key, caller=self.caller)
        return "Removed the safeguard."

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        safeguards, judge = (
            list(read_safeguards(self.flag, self.flag_path.environment)),
            Judge(timezone.now()),
        )
        where = {"project": self.flag_path.project, "environment": self.flag_path.environment}
        return super().get_context_data(
            flag_path=self.flag_path,
            verdicts=[judge.judge_of_flag(safeguard) for safeguard in safeguards],
            is_on=bool(find_places_on(safeguards)),
            may_change=self.caller.can(SWITCH, **where),
            unapproved=set(unapproved_safeguards(self.flag_path.project).values_list("pk", flat=True)),
            **kwargs,
        )

    def get_curl(self) -> str:
        path = api_path(self.flag_path.project, self.flag_path.feature)
        return curl_for(self.request, "GET", f"{path}/environments/{self.flag_path.environment}/safeguards")


class ChartsPage(_ListPage):
    """The charts of the installation. Every user can read them, admins change them."""

    template_name = "plans/charts.html"
    title = "Impact metrics"
    api_call = "GET /api/admin/impact-metrics/config"
    flag: Flag | None = None

    @property
    def owner(self) -> Owner | None:
        return None

    def may_change(self) -> bool:
        return self.caller.can(Permission.ADMIN)

    def add(self) -> str:
        set_chart(self.owner, read_chart(self.request.POST), caller=self.caller)
        return "Added the chart."

    def remove(self, key: str) -> str:
        remove_chart(self.owner, key, caller=self.caller)
        return "Removed the chart."

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        now = timezone.now()
        return super().get_context_data(
            flag=self.flag,
            charts=[(chart, draw_metric(chart, now)) for chart in read_charts(self.flag)],
            may_change=self.may_change(),
            **kwargs,
        )


class FlagChartsPage(ChartsPage):
    title = "Impact metrics of {name}"
    api_call = "GET /api/admin/projects/{project_id}/features/{name}/impact-metrics/config"

    def find(self) -> None:
        self.flag = access_flag(self.caller, *self.owner, archived=False)

    def get_breadcrumbs(self) -> Breadcrumbs:
        return get_flag_breadcrumbs(self.flag) if self.flag else ()

    @property
    def owner(self) -> Owner:
        return self.kwargs["project_id"], self.kwargs["name"]

    def may_change(self) -> bool:
        return self.caller.can(UPDATE_CHARTS, project=self.kwargs["project_id"])
