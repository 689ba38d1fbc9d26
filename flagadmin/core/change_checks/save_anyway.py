"""Asks whether to save what a project refuses, because it would break expectations of saved contexts.

Every form of the console and of the admin site may be refused so, when all of it is written. The page has the values
that were sent, and sends them again with ``FIELD``.
"""

from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import reselect, reswap, retarget

from flagadmin.core.change_checks import BrokenExpectations, overriding
from flagadmin.core.change_checks.override import FIELD
from flagadmin.core.http.error_responses import previous_page


def saving_as_asked(request: HttpRequest, caller: Any) -> AbstractContextManager[None]:
    """Where the form says so, expectations may break."""
    return overriding(caller if FIELD in request.POST else None)


def ask_to_save_anyway(request: HttpRequest, error: BrokenExpectations) -> HttpResponse:
    by_script = "HX-Request" in request.headers
    kept = [(name, text) for name, texts in request.POST.lists() for text in texts]
    context = {
        "title": "Expectations would break",
        "error": error,
        "kept": [pair for pair in kept if pair[0] != "csrfmiddlewaretoken"],
        "field": FIELD,
        "back": previous_page(request),
    }
    answer = render(request, "console/save_anyway.html", context, status=error.status)
    return retarget(reswap(reselect(answer, "#main"), "outerHTML"), "#main") if by_script else answer
