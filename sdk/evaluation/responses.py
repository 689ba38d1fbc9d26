"""Django's responses with answers to contexts."""

from django.http import HttpResponse

from flagadmin.core.http.not_modified import not_modified
from sdk.evaluation.prepared import Answer


def respond(answer: Answer | None) -> HttpResponse:
    """Views always have an answer, because they may evaluate."""
    assert answer is not None
    if answer.body is None:
        return not_modified(answer.etag)
    headers = {"ETag": answer.etag} if answer.etag else {}
    return HttpResponse(answer.body, content_type="application/json", headers=headers)
