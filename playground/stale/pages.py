"""/stale-flags/, which leads to the list of flags, and the button that completes one of them."""

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils import timezone

from flagadmin.core.errors import InvalidOperation
from groups.console import ActionPage, ConsolePage
from playground.engine.outcomes import State
from playground.stale.queries import prove_flags
from projects.access import access_flag
from projects.flags.lifecycle.actions import complete_flag, uncomplete_flag
from projects.flags.lists.conditions import list_reasons

DISCARDED, KEPT = "discarded", "kept"


class StaleFlagsPage(ConsolePage):
    """The former address of the flags that can go: a view of the list of flags."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        query = {"state": "removable"} | (
            {"project": project} if (project := request.GET.get("project")) else {}
        )
        return HttpResponseRedirect(f"{reverse('all-flags')}?{urlencode(query)}")


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
