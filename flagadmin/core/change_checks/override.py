"""Overrides the refusal of a check: with a query parameter of the API, or with the page that asks the user.

A check may refuse any form of the console and of the admin site once it has written everything. The page then keeps
the submitted values and sends them again with ``FIELD`` (broken expectations), ``SKIP`` or another field that the
refusal asks for, such as a comment.

A form may also ask for a later time (``WHEN`` is ``at``). It is then always refused, and the refusal schedules the
change.
"""

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect, reselect, reswap, retarget
from rest_framework.request import Request

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import read_comment_in_form, tidy_comment
from flagadmin.core.change_options import changing
from flagadmin.core.hook import Hook
from flagadmin.core.http.error_responses import find_previous_page
from flagadmin.core.http.fields import read_boolean

NAME = "ignoreExpectations"
FIELD = "ignore_expectations"
"""The same in forms of the console."""
_ABOUT_FLAGS = re.compile(
    r"/api/admin/(projects/\{\w+\}/(features|bulk_features|archive|revive|delete|environments/promote)"
    r"|segments|features-batch/(import|validate)|environments/\{\w+\}/revert)"
)


def ignores_expectations(request: Request) -> bool:
    """Whether the request has the parameter. Raises ValidationError for values other than true and false."""
    return read_boolean(request, NAME)


def query_parameters(path: str, method: str) -> list[dict[str, Any]]:
    """The OpenAPI parameters of an operation that changes the results of flags."""
    if method == "GET" or not _ABOUT_FLAGS.match(path):
        return []
    return [
        {
            "in": "query",
            "name": NAME,
            "schema": {"type": "boolean"},
            "description": "Make the change even if it breaks expectations of saved contexts and the project refuses "
            'that. Needs the "Switch flags" permission in their environments; the audit log says so.',
        }
    ]


SKIP = "skip_change_request"
WHEN, LATER, STEPS = "when", "at", "steps"
"""The form field for the time of a change. Its values: ``at`` (the time is in the field of that name) and ``steps``."""


def changing_as_asked(request: HttpRequest, caller: Any, **options: Any) -> AbstractContextManager[None]:
    """Sets the options of the form, also of its caller. Raises CommentRefused if its comment is too long.

    Who skips a change request has to say why.
    """
    comment = tidy_comment(read_comment_in_form(request.POST))
    caller.skips_requests = SKIP in request.POST and bool(comment)
    caller.breaks_expectations = FIELD in request.POST
    caller.postpones = request.POST.get(WHEN) in (LATER, STEPS)
    return changing(comment=comment, **options)


settle: Hook[[Refusal, Mapping[str, str], Any], str | None] = Hook(
    "flagadmin.core.change_checks.override.settle", lambda error, answers, caller: None
)
"""Carries out the choice in the form of a refusal's page. Returns the URL to show next; None if there is nothing to do
yet.
"""


def ask_what_to_do(request: HttpRequest, error: Refusal, caller: Any) -> HttpResponse:
    """Shows the page of the refusal, or redirects if the form already has the user's choice."""
    # A comment that is too long was refused earlier; this page may be about that.
    with changing(comment=read_comment_in_form(request.POST)):
        asking = caller.asking(breaks_expectations=False, postpones=False)
        url = settle(error, request.POST, asking)
    by_script = "HX-Request" in request.headers
    if url is not None:
        return HttpResponseClientRedirect(url) if by_script else HttpResponseRedirect(url)
    context = {
        "title": error.title,
        "error": error,
        "field": FIELD,
        "skip": SKIP,
        "caller": caller,
        "may_skip": error.may_be_skipped_by(caller),
        "comment": read_comment_in_form(request.POST),
        "kept": _list_sent_values(request, except_for=error.answer_field),
        "back": find_previous_page(request),
    }
    answer = render(request, error.template_name, context, status=error.status)
    return retarget(reswap(reselect(answer, "#main"), "outerHTML"), "#main") if by_script else answer


def _list_sent_values(request: HttpRequest, *, except_for: str) -> list[tuple[str, str]]:
    """Names and values of the form's fields. The page submits them again together with the field that it adds."""
    sent = [(name, value) for name, values in request.POST.lists() for value in values]
    return [pair for pair in sent if pair[0] not in ("csrfmiddlewaretoken", except_for)]
