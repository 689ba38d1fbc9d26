"""/calendar/: the page with the user's calendar URL, and the calendar itself for programs that have the URL."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotFound
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views import View

from groups.console import ActionPage, FormPage
from groups.login.links import make_absolute_url
from groups.one_time_secrets import ShowsSecretOnce
from groups.tokens import hash_secret
from integrations.calendar import actions
from integrations.models import CalendarFeed


class CalendarPage(ShowsSecretOnce, FormPage):
    template_name = "calendar/calendar.html"
    title = "Calendar"
    form_class = forms.Form

    def submit(self, form: Any) -> str:
        token = actions.create_feed(caller=self.caller)
        address = make_absolute_url(self.request, reverse("calendar-feed", args=[token]))
        self.created = {"secret": address, "back": reverse("calendar")}
        return reverse("calendar")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        feed = CalendarFeed.objects.filter(user=self.caller.user).first()
        button = "Create another address" if feed else "Create address"
        return super().get_context_data(**{"button": button, "feed": feed, **kwargs})


class DeleteCalendar(ActionPage):
    success_url = reverse_lazy("calendar")

    def act(self) -> str:
        actions.delete_feed(caller=self.caller)
        return "Deleted the calendar address. Subscriptions to it no longer work."


class CalendarFeedView(View):
    """Needs no login: the token is in the URL, because calendar programs cannot send it otherwise."""

    def get(self, request: HttpRequest, token: str) -> HttpResponseBase:
        from integrations.calendar.feed import find_caller, write_calendar  # late: icalendar has 80 modules

        caller = find_caller(hash_secret(token))
        if caller is None:
            return HttpResponseNotFound("There is no such calendar.\n", content_type="text/plain")
        content = write_calendar(caller, request.GET.get("project", ""), timezone.now())
        return HttpResponse(
            content, content_type="text/calendar; charset=utf-8", headers={"Cache-Control": "private"}
        )
