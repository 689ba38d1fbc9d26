"""Asks whether to save what a project refuses, because it would break expectations of saved contexts.

Every form of the console and of the admin site may be refused so, when all of it is written. The page has the values
that were sent, and sends them again with ``FIELD``.
"""

from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest, HttpResponse

from flagadmin.core.change_checks import BrokenExpectations, overriding
from flagadmin.core.change_checks.ask_again import ask_again
from flagadmin.core.change_checks.override import FIELD


def saving_as_asked(request: HttpRequest, caller: Any) -> AbstractContextManager[None]:
    """Where the form says so, expectations may break."""
    return overriding(caller if FIELD in request.POST else None)


def ask_to_save_anyway(request: HttpRequest, error: BrokenExpectations) -> HttpResponse:
    context = {"title": "Expectations would break", "error": error, "field": FIELD}
    return ask_again(request, "console/save_anyway.html", status=error.status, asked=FIELD, context=context)
