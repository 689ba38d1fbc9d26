"""The card of a flag's page with what saved contexts expect of it, and whether they get it."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from groups.console import ConsolePage
from playground.saved_contexts.actions import may_save
from playground.saved_contexts.expectations import check_expectations, list_expectations
from playground.saved_contexts.expectations_page import NOT_MET, make_expectation_row
from projects.access import access_flag
from projects.console import flag_url

MAX_ROWS = 10


class FlagExpectationsPart(ConsolePage):
    """Loaded by the flag's page once it is seen: checking takes longer than the page."""

    template_name = "saved_contexts/flag_expectations.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        flag = access_flag(self.caller, kwargs["project_id"], kwargs["name"])
        expected = list_expectations(self.caller, flags={flag.name})
        rows = [make_expectation_row(checked) for checked in check_expectations(self.caller, expected)]
        rows.sort(key=lambda row: (row.met != NOT_MET, row.environment, row.name))
        about = {"flag": flag.name, "next": flag_url(flag.project_id, flag.name)}
        return self.render_to_response(
            {
                "rows": rows[:MAX_ROWS],
                "number": len(rows),
                "all_url": f"{reverse('expectations')}?{urlencode({'q': flag.name})}",
                "new_url": f"{reverse('expectation-new')}?{urlencode(about)}"
                if may_save(self.caller)
                else "",
            }
        )
