"""Buttons that end sessions: one's own on /account/, other users' on the page of their account."""

from django.urls import reverse_lazy

from groups.console import ActionPage
from groups.login.passwords import log_out_everywhere
from groups.people.console import OneAccount, OwnPage
from groups.sessions.store import end_session, keep_this_session
from groups.templatetags.devices import device


class EndSession(OwnPage, ActionPage):
    """Logs one of the visitor's other browsers out."""

    success_url = reverse_lazy("account")

    def act(self) -> str:
        session = end_session(self.user, self.kwargs["session_id"], caller=self.caller)
        return f"Logged out {device(session.user_agent)}."


class EndOtherSessions(OwnPage, ActionPage):
    success_url = reverse_lazy("account")

    def act(self) -> str:
        log_out_everywhere(self.user, caller=self.caller)
        keep_this_session(self.request, self.user)
        return "You are logged out everywhere else."


class EndSessionsOf(OneAccount, ActionPage):
    """Ends all sessions of another account."""

    def act(self) -> str:
        user = self.account()
        log_out_everywhere(user, caller=self.caller)
        return f"{user.display_name} is logged out everywhere."

    def get_success_url(self) -> str:
        return self.url
