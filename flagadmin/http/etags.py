"""``ETag`` and ``If-Match`` (RFC 9110): whoever sends the tag of what they read overwrites nobody else's change.

A tag is ``"VERSION-BODY"``. VERSION is the fingerprint of the document that the actions compare (``expected``), and
all that ``If-Match`` looks at: a count or a "last seen" in the body that moves on refuses no change. BODY is the hash
of the answer, so that no two answers have the same tag and ``If-None-Match`` may answer 304.
"""

import hashlib
import re
from typing import Any, ClassVar

from django.http import HttpResponseBase
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.edit_conflicts import Expected, fingerprint
from flagadmin.errors import EditConflict, PreconditionFailed, ValidationError

_TAG = r'(W/)?"([^"]*)"'
_TAGS = re.compile(rf"\s*{_TAG}(\s*,\s*{_TAG})*\s*")


class ETagMixin:
    """For a view set: tags what ``tagged`` actions answer; ``conditional`` ones pass ``self.expected`` on."""

    tagged: ClassVar[frozenset[str]] = frozenset({"retrieve"})
    conditional: ClassVar[frozenset[str]] = frozenset({"update", "partial_update", "destroy"})
    request: Any
    action: Any

    def current_document(self) -> Any:
        """The document that the actions compare."""
        raise NotImplementedError

    @property
    def expected(self) -> Expected:
        return expected_versions(self.request.headers.get("If-Match"))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        if self.action in self.tagged:
            # Before the body is read: a version that is too old refuses a change, one too new would lose one.
            self.version = fingerprint(self.current_document())

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Any:
        if self.action in self.tagged and response.status_code == 200:
            response.add_post_render_callback(self.with_tag)
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]

    def with_tag(self, response: Response) -> HttpResponseBase | None:
        """Or a 304, where the client has just this answer."""
        body = hashlib.sha256(response.content).hexdigest()[:16]
        tag = response["ETag"] = f'"{self.version}-{body}"'
        if "If-None-Match" not in self.request.headers:
            return None
        return get_conditional_response(self.request._request, etag=tag, response=response)

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, EditConflict):
            headers = {"ETag": etag(exc.current)}
            exc = PreconditionFailed(extra={"current": exc.current}, headers=headers)
        return super().handle_exception(exc)  # type: ignore[misc]


def etag(document: Any) -> str:
    """A tag for ``If-Match`` alone, for answers that are not the document itself."""
    return f'"{fingerprint(document)}"'


def expected_versions(if_match: str | None) -> Expected:
    """Those that ``If-Match`` accepts. A weak tag never matches. Raises ValidationError."""
    if if_match is None or if_match.strip() == "*":  # what is not there is not found anyway
        return None
    if not _TAGS.fullmatch(if_match):
        raise ValidationError.at("If-Match", 'must be "*" or ETags in double quotes, separated by commas')
    return frozenset(tag.partition("-")[0] for weak, tag in re.findall(_TAG, if_match) if not weak)


def header_parameters(view: Any) -> list[dict[str, Any]]:
    """The request headers of the view's operation, for its description."""
    names = [
        name
        for name, actions in (("If-Match", "conditional"), ("If-None-Match", "tagged"))
        if has(view, actions)
    ]
    return [
        {"in": "header", "name": name, "schema": {"type": "string"}, "description": _DESCRIPTIONS[name]}
        for name in names
    ]


def add_answers(view: Any, answers: dict[str, Any]) -> None:
    """Describes the tag of the view's answer, and 304."""
    if has(view, "tagged"):
        answers["200"]["headers"] = {
            "ETag": {"schema": {"type": "string"}, "description": "For `If-Match` and `If-None-Match`."}
        }
        answers["304"] = {"description": "The client has this answer: its tag is in `If-None-Match`."}


def has(view: Any, actions: str) -> bool:
    return getattr(view, "action", None) in getattr(view, actions, ())


_DESCRIPTIONS = {
    "If-Match": "The `ETag` of what you read. Where it has changed since, nothing is done and the answer is 412. "
    "Without the header, the last change wins.",
    "If-None-Match": "The `ETag` of the answer you have. If it would be the same, the answer is 304.",
}
