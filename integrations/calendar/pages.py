"""/calendar/: the page with the user's calendar URL, and the calendar itself for programs that have the URL.

Creates and deletes the URL of a person's calendar.
"""

import secrets
from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotFound
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.views import View

from flagadmin.core.audit.record import Event, EventType, record
from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import InvalidOperation, NotFound
from groups.access import Caller
from groups.console import ActionPage, FormPage
from groups.login.links import make_absolute_url
from groups.models import User
from groups.one_time_secrets import ShowsSecretOnce
from groups.tokens import hash_secret
from integrations.models import CalendarFeed


class CalendarPage(ShowsSecretOnce, FormPage):
    template_name = "calendar/calendar.html"
    title = "Calendar"
    form_class = forms.Form

    def submit(self, form: Any) -> str:
        token = create_feed(caller=self.caller)
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
        delete_feed(caller=self.caller)
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


@transactional
def create_feed(*, caller: Caller) -> str:
    """Returns the token, which cannot be read later. The previous one stops working at once. Raises
    InvalidOperation.
    """
    user, token = _find_user(caller), secrets.token_urlsafe(32)
    CalendarFeed.objects.update_or_create(user=user, defaults={"token_hash": hash_secret(token)})
    record(Event(type=EventType.CALENDAR_FEED_CREATED, subject=user.username), actor=caller)
    return token


@transactional
def delete_feed(*, caller: Caller) -> None:
    """Raises NotFound, InvalidOperation."""
    user = _find_user(caller)
    if not CalendarFeed.objects.filter(user=user).delete()[0]:
        raise NotFound("There is no calendar.")
    record(Event(type=EventType.CALENDAR_FEED_DELETED, subject=user.username), actor=caller)


def _find_user(caller: Caller) -> User:
    if caller.user is None:
        raise InvalidOperation("A calendar belongs to a person.")
    return caller.user
