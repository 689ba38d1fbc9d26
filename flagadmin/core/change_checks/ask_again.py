"""A page that asks for something before it sends the same form again, with the values that were sent."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import reselect, reswap, retarget

from flagadmin.core.change_checks.comments import FIELD, CommentRefused, read_comment_in_form
from flagadmin.core.http.error_responses import find_previous_page


def ask_again(
    request: HttpRequest, template: str, *, status: int, field: str, context: dict[str, Any]
) -> HttpResponse:
    """``field`` is the form field that the page adds to the others."""
    by_script = "HX-Request" in request.headers
    hidden = [(name, text) for name, texts in request.POST.lists() for text in texts]
    context = {
        "kept": [pair for pair in hidden if pair[0] not in ("csrfmiddlewaretoken", field)],
        "back": find_previous_page(request),
        **context,
    }
    answer = render(request, template, context, status=status)
    return retarget(reswap(reselect(answer, "#main"), "outerHTML"), "#main") if by_script else answer


def ask_for_comment(request: HttpRequest, error: CommentRefused) -> HttpResponse:
    context = {"title": "Why?", "error": error, "comment": read_comment_in_form(request.POST)}
    return ask_again(request, "console/ask_comment.html", status=error.status, field=FIELD, context=context)
