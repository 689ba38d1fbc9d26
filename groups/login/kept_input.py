"""Input of a form that was refused because the session had ended or changed: the form comes back filled in.

Nobody without a session makes the server store anything: until the login is done, the input travels in the login form.
Then it waits in the session for the page of the form, which fills it in and saves nothing.
"""

import time
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, QueryDict
from django.urls import resolve
from django.utils.http import url_has_allowed_host_and_scheme

SESSION_KEY = "kept_input"
SECONDS = 3600
LONGEST = 500_000  # characters; with it the login form still fits into what a request may be
RESTORE = "restore"  # as the "do" of a form: draw it with what it holds, save nothing


def input_of(request: HttpRequest) -> str:
    """What was entered, as a query string. Never a password; "" where the page cannot fill in its form."""
    if not getattr(_view(request), "restores", False):
        return ""
    entered = request.POST.copy()
    for name in list(entered):
        if name == "csrfmiddlewaretoken" or "password" in name.lower():
            del entered[name]
    query = entered.urlencode()
    return query if len(query) <= LONGEST else ""


def page_of(request: HttpRequest) -> str:
    """Where the form stands: this URL, or the page that sent it here where this one only accepts submissions."""
    if "get" in getattr(_view(request), "http_method_names", ()):
        return request.get_full_path()
    referrer = urlsplit(request.headers.get("Referer", ""))
    ours = referrer.netloc == request.get_host() and url_has_allowed_host_and_scheme(referrer.path, None)
    return referrer._replace(scheme="", netloc="", fragment="").geturl() if ours else "/"


def _view(request: HttpRequest) -> object:
    try:
        return getattr(resolve(request.path_info).func, "view_class", None)
    except Http404:
        return None


def keep_input(request: HttpRequest, page: str, entered: str) -> None:
    """Until the page is opened, for an hour. Says that nothing was saved."""
    if entered:
        request.session[SESSION_KEY] = {"page": page, "entered": entered, "until": time.time() + SECONDS}
        messages.warning(
            request,
            "Your session changed before the form was submitted, so nothing was saved. "
            "Check it and submit it again.",
        )
    else:
        messages.warning(request, "Your session changed, so nothing was done. Try again.")


def take_input(request: HttpRequest) -> QueryDict | None:
    """What was kept for this page, once."""
    kept = request.session.get(SESSION_KEY)
    if request.method != "GET" or not kept or kept["page"] != request.get_full_path():
        return None
    del request.session[SESSION_KEY]
    if kept["until"] < time.time():
        return None
    entered = QueryDict(kept["entered"], mutable=True)
    entered["do"] = RESTORE
    return entered
