"""Asks what to do about a change that a check refuses.

Every form of the console and of the admin site may be refused so, when all of it is written. The page has the values
that were sent, and sends them again with ``FIELD`` (broken expectations), ``SKIP`` or what else the refusal asks for.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django_htmx.http import HttpResponseClientRedirect

from flagadmin.core.change_checks import Refusal, overriding, skipping
from flagadmin.core.change_checks.ask_again import ask_again
from flagadmin.core.change_checks.override import FIELD

SKIP = "skip_change_request"


@contextmanager
def saving_as_asked(request: HttpRequest, caller: Any) -> Iterator[None]:
    """Where the form says so, expectations may break, and change requests are skipped."""
    with (
        overriding(caller if FIELD in request.POST else None),
        skipping(caller if SKIP in request.POST else None),
    ):
        yield


def ask_what_to_do(request: HttpRequest, error: Refusal, caller: Any) -> HttpResponse:
    """The page of the refusal, or where it leads if the form says what to do about it."""
    if (url := error.settle(request.POST, caller)) is not None:
        by_script = "HX-Request" in request.headers
        return HttpResponseClientRedirect(url) if by_script else HttpResponseRedirect(url)
    context = {
        "title": error.title,
        "error": error,
        "field": FIELD,
        "skip": SKIP,
        "caller": caller,
        "may_skip": error.may_be_skipped_by(caller),
    }
    return ask_again(request, error.template_name, status=error.status, asked=error.asked, context=context)
