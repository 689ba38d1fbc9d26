"""Shows a newly created secret once, on the page that its form redirects to.

The redirect carries the secret in a signed cookie that expires after a minute. The server does not store it,
and reloading the page neither shows it again nor creates another one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.core import signing
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.utils.http import urlencode

from groups.console import ConsolePage

COOKIE = "shown_once"
SECONDS = 60
CREATED = "created"  # a URL parameter of the page that shows the secret


class ShowsSecretOnce(ConsolePage):
    """A mixin for a page whose form creates a secret.

    On success, the page sets ``created``: the ``secret`` and the other template variables. ``created_query`` has
    further parameters for the URL of the page that shows it.
    """

    created: dict[str, str] | None = None
    created_query: Mapping[str, str] = {}

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response = super().post(request, *args, **kwargs)  # type: ignore[misc]
        return redirect_to_secret(request, self.created, self.created_query) if self.created else response

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if CREATED not in request.GET:
            return super().get(request, *args, **kwargs)
        created = take_secret(request)
        if created is None:
            return self.already_shown()
        response = self.show_secret(created)
        response.delete_cookie(COOKIE, path=request.path, samesite="Strict")
        return response

    def show_secret(self, created: dict[str, str]) -> HttpResponseBase:
        return self.render_to_response(self.get_context_data(**{"curl": "", **created}))

    def already_shown(self) -> HttpResponseBase:
        """Redirects to the parent page, or to this one if it has none."""
        messages.info(
            self.request, "It was created and shown once. If you did not copy it, create another one."
        )
        breadcrumbs = self.get_breadcrumbs()
        return HttpResponseRedirect(str(breadcrumbs[-1][1]) if breadcrumbs else self.request.path)


def redirect_to_secret(
    request: HttpRequest, created: dict[str, str], query: Mapping[str, str] = MappingProxyType({})
) -> HttpResponseBase:
    response = HttpResponseRedirect("&".join(filter(None, (f"{request.path}?{CREATED}", urlencode(query)))))
    value = signing.dumps([request.user.pk, created], salt=_make_salt(request), compress=True)
    response.set_cookie(
        COOKIE,
        value,
        max_age=SECONDS,
        path=request.path,
        secure=settings.HTTPS,
        httponly=True,
        samesite="Strict",
    )
    return response


def take_secret(request: HttpRequest) -> dict[str, str] | None:
    """The contents of the cookie; None if it is missing, invalid or expired."""
    try:
        value = request.COOKIES.get(COOKIE, "")
        user, created = signing.loads(value, salt=_make_salt(request), max_age=SECONDS)
    except signing.BadSignature:
        return None
    return created if user == request.user.pk else None


def _make_salt(request: HttpRequest) -> str:
    return f"{COOKIE} {request.path}"
