"""Buttons that end sessions: one's own on /account/, those of others on the page of their account."""

from django.urls import reverse

from groups.console import ActionPage
from groups.login.passwords import log_out_everywhere
from groups.people.console import OneAccount, OwnPage
from groups.sessions.actions import end_session
from groups.sessions.store import keep_this_session
from groups.templatetags.devices import device


class EndSession(OwnPage, ActionPage):
    """Logs one of the visitor's other browsers out."""

    def act(self) -> str:
        session = end_session(self.user, self.kwargs["session_id"], caller=self.caller)
        return f"Logged out {device(session.user_agent)}."

    def back(self) -> str:
        return reverse("account")


class EndOtherSessions(OwnPage, ActionPage):
    def act(self) -> str:
        log_out_everywhere(self.user, caller=self.caller)
        keep_this_session(self.request, self.user)
        return "You are logged out everywhere else."

    def back(self) -> str:
        return reverse("account")


class EndSessionsOf(OneAccount, ActionPage):
    """Ends all sessions of another account."""

    def act(self) -> str:
        user = self.account()
        log_out_everywhere(user, caller=self.caller)
        return f"{user.display_name} is logged out everywhere."

    def back(self) -> str:
        return self.url
