"""/projects/ID/features/NAME/insights/: the evaluations of a flag over 24 hours, 30 or 90 days."""

from typing import Any

from flagadmin.core.lists.pages import change_query
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.flags.insights.queries import PERIODS, read_insights
from projects.flags.lists.queries import list_environment_names


class InsightsPage(OnFlagPage):
    """``?period=30d``. Anything else counts as 24 hours."""

    template_name = "flags/insights.html"
    title = "Insights of {name}"
    api_call = "GET /api/admin/client-metrics/features/{name}/raw"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        self.flag = access_flag(self.caller, *self.place)
        chosen = self.request.GET.get("period", "")
        period = chosen if chosen in PERIODS else "24h"
        names = list_environment_names(self.flag.project)
        return super().get_context_data(
            flag=self.flag,
            insights=read_insights(self.flag, names, period, caller=self.caller),
            period=PERIODS[period][0],
            unit="hour" if period == "24h" else "day",
            segments=[
                (label, change_query(self.request.GET, period=key), None, key == period)
                for key, (label, _) in PERIODS.items()
            ],
            csv_url=f"{flag_url(self.flag.project_id, self.flag.name)}?format=csv",
            **kwargs,
        )
