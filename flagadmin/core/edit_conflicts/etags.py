"""``ETag`` and ``If-Match`` (RFC 9110): API clients can make changes without overwriting those of others.

A tag is ``"VERSION-BODY"``. VERSION is the fingerprint of the document that actions compare (``expected``).
VERSION may be several fingerprints with dots between them, for actions that compare different documents.
``If-Match`` compares only VERSION, so a count or "last seen" time that changes in the response does not block
an edit. BODY is the hash of the response, so different responses have different tags and ``If-None-Match``
can answer 304.
"""

import hashlib
import re
from typing import Any, ClassVar

from django.http import HttpResponseBase
from django.utils.cache import get_conditional_response
from rest_framework.request import Request
from rest_framework.response import Response

from flagadmin.core.edit_conflicts import Expected, hash_document
from flagadmin.core.errors import EditConflict, PreconditionFailed, ValidationError

_TAG = r'(W/)?"([^"]*)"'
_TAGS = re.compile(rf"\s*{_TAG}(\s*,\s*{_TAG})*\s*")
_DESCRIPTIONS = {
    "If-Match": "The `ETag` of what you read. Where it has changed since, nothing is done and the answer is 412. "
    "Without the header, the last change wins.",
    "If-None-Match": "The `ETag` of the answer you have. If it is unchanged, the answer is 304.",
}


class ETagMixin:
    """Adds ETags to the responses of ``tagged`` actions; ``conditional`` actions use ``self.expected``."""

    tagged: ClassVar[frozenset[str]] = frozenset({"retrieve"})
    conditional: ClassVar[frozenset[str]] = frozenset({"update", "partial_update", "destroy"})
    request: Any
    action: Any

    def get_current_document(self) -> Any:
        """The document that actions compare with ``expected``. Its fingerprint is the version."""
        raise NotImplementedError

    def make_version(self) -> str:
        return hash_document(self.get_current_document())

    @property
    def header_parameters(self) -> list[dict[str, Any]]:
        """The OpenAPI parameters for the conditional headers of the current action."""
        headers = {"If-Match": self.conditional, "If-None-Match": self.tagged}
        return [
            {"in": "header", "name": name, "schema": {"type": "string"}, "description": _DESCRIPTIONS[name]}
            for name, actions in headers.items()
            if self.action in actions
        ]

    @property
    def expected(self) -> Expected:
        return read_expected_versions(self.request.headers.get("If-Match"))

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)  # type: ignore[misc]
        if self.action in self.tagged:
            # Computed before the response body is read: an outdated version only causes a 412, but one newer
            # than the body would let the client overwrite a change it has not seen.
            self.version = self.make_version()

    def finalize_response(self, request: Request, response: Response, *args: Any, **kwargs: Any) -> Any:
        if self.action in self.tagged and response.status_code == 200:
            response.add_post_render_callback(self.add_tag)
        return super().finalize_response(request, response, *args, **kwargs)  # type: ignore[misc]

    def add_tag(self, response: Response) -> HttpResponseBase | None:
        """Adds the ETag, or returns a 304 if the client already has this response."""
        body = hashlib.sha256(response.content).hexdigest()[:16]
        tag = response["ETag"] = f'"{self.version}-{body}"'
        if "If-None-Match" not in self.request.headers:
            return None
        return get_conditional_response(self.request._request, etag=tag, response=response)

    def handle_exception(self, exc: Exception) -> Any:
        if isinstance(exc, EditConflict):
            headers = {"ETag": make_etag(exc.current)}
            exc = PreconditionFailed(exc.words, extra={"current": exc.current}, headers=headers)
        return super().handle_exception(exc)  # type: ignore[misc]


def make_etag(document: Any) -> str:
    """A tag with the version only, for responses that are not the document itself."""
    return f'"{hash_document(document)}"'


def read_expected_versions(if_match: str | None) -> Expected:
    """The versions that ``If-Match`` accepts. A weak tag never matches. Raises ValidationError."""
    if if_match is None or if_match.strip() == "*":  # "*" means "exists"; a missing row is a 404 anyway
        return None
    if not _TAGS.fullmatch(if_match):
        raise ValidationError.at("If-Match", 'must be "*" or ETags in double quotes, separated by commas')
    versions = (tag.partition("-")[0] for weak, tag in re.findall(_TAG, if_match) if not weak)
    return frozenset(part for version in versions for part in version.split("."))
