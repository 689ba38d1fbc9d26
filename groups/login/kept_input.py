"""Keeps the input of a form that was rejected because the session had ended or changed, and restores it.

Without a session, nothing is stored on the server: the login form carries the input in a hidden field. After
the login, the session stores it until the page of the form is opened. The form is then filled in, but nothing
is saved.
"""

import time
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import Http404, HttpRequest, QueryDict
from django.urls import resolve
from django.utils.http import url_has_allowed_host_and_scheme

SESSION_KEY = "kept_input"
LIFETIME_SECONDS = 3600
MAX_INPUT_LENGTH = 500_000  # characters; with it, the login form still fits into the limit for request bodies
RESTORE = "restore"  # a value of the form field "do": only render the form with the submitted values


def read_input(request: HttpRequest) -> str:
    """The submitted values as a query string, without passwords; "" if the page cannot restore its form."""
    if not getattr(_find_view(request), "restores", False):
        return ""
    values = request.POST.copy()
    for name in list(values):
        if name == "csrfmiddlewaretoken" or "password" in name.lower():
            del values[name]
    query = values.urlencode()
    return query if len(query) <= MAX_INPUT_LENGTH else ""


def find_page(request: HttpRequest) -> str:
    """The page of the form: this URL or, if it only accepts POST, the page in the Referer header."""
    if "get" in getattr(_find_view(request), "http_method_names", ()):
        return request.get_full_path()
    referrer = urlsplit(request.headers.get("Referer", ""))
    is_own = referrer.netloc == request.get_host() and url_has_allowed_host_and_scheme(referrer.path, None)
    return referrer._replace(scheme="", netloc="", fragment="").geturl() if is_own else "/"


def _find_view(request: HttpRequest) -> object:
    try:
        return getattr(resolve(request.path_info).func, "view_class", None)
    except Http404:
        return None


def keep_input(request: HttpRequest, page: str, entered: str) -> None:
    """Stores the input until the page is opened, for one hour at most. Adds a message for the user."""
    if entered:
        request.session[SESSION_KEY] = {
            "page": page,
            "entered": entered,
            "until": time.time() + LIFETIME_SECONDS,
        }
        messages.warning(
            request,
            "Your session changed before the form was submitted, so nothing was saved. "
            "Check it and submit it again.",
        )
    else:
        messages.warning(request, "Your session changed, so nothing was done. Try again.")


def take_input(request: HttpRequest) -> QueryDict | None:
    """Returns the input stored for this page and removes it."""
    stored = request.session.get(SESSION_KEY)
    if request.method != "GET" or not stored or stored["page"] != request.get_full_path():
        return None
    del request.session[SESSION_KEY]
    if stored["until"] < time.time():
        return None
    values = QueryDict(stored["entered"], mutable=True)
    values["do"] = RESTORE
    return values
