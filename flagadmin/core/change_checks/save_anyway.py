"""Asks what to do about a change that a check refuses.

Every form of the console and of the admin site may be refused so, when all of it is written. The page has the values
that were sent, and sends them again with ``FIELD`` (broken expectations), ``SKIP`` or whatever field the refusal asks
for, such as a comment.

A form may also ask for a later time (``WHEN`` is ``at``): it is refused in any case, and the refusal sees to the rest.
"""

from contextlib import AbstractContextManager
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRedirect, reselect, reswap, retarget

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.comments import read_comment_in_form, tidy_comment
from flagadmin.core.change_checks.override import FIELD
from flagadmin.core.change_options import changing
from flagadmin.core.http.error_responses import find_previous_page

SKIP = "skip_change_request"
WHEN, LATER, STEPS = "when", "at", "steps"
"""The field of forms that says when, and its values for a time, which is in the field of that name, and for steps."""


def changing_as_asked(request: HttpRequest, caller: Any, **options: Any) -> AbstractContextManager[None]:
    """Sets the options of the form. Raises CommentRefused if its comment is too long."""
    return changing(
        comment=tidy_comment(read_comment_in_form(request.POST)),
        override_by=caller if FIELD in request.POST else None,
        skip_by=_find_skipping(request, caller),
        is_postponed=request.POST.get(WHEN) in (LATER, STEPS),
        **options,
    )


def _find_skipping(request: HttpRequest, caller: Any) -> Any:
    """The caller, if the form skips a change request and says why."""
    return caller if SKIP in request.POST and read_comment_in_form(request.POST) else None


def ask_what_to_do(request: HttpRequest, error: Refusal, caller: Any) -> HttpResponse:
    """The page of the refusal, or where it leads if the form says what to do about it."""
    # A comment that is too long has been refused before: it may be what the page is about.
    with changing(comment=read_comment_in_form(request.POST), skip_by=_find_skipping(request, caller)):
        url = error.settle(request.POST, caller)
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
    """Names and values of the form's fields, which the page sends again with the field that it adds."""
    sent = [(name, value) for name, values in request.POST.lists() for value in values]
    return [pair for pair in sent if pair[0] not in ("csrfmiddlewaretoken", except_for)]
