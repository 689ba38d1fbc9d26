"""Edit conflicts in forms: a form sends the version that it was rendered from in a hidden field."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Max, QuerySet
from django.forms import BaseForm, BoundField, JSONField
from django.http import HttpRequest, QueryDict

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from flagadmin.core.errors import AppError, EditConflict
from flagadmin.core.http.parameters import read_id
from flagadmin.core.wording import clip

MAX_EVENTS = 10
MAX_VALUE_LENGTH = 300  # characters


@dataclass(frozen=True, slots=True)
class FormVersion:
    """The version in the form field ``expected``.

    ``event`` is the id of the last audit event when the form was rendered: 0 if there was none, None if it
    was not sent.
    """

    fingerprint: str
    event: int | None

    @classmethod
    def of(cls, document: Any, events: QuerySet[AuditEvent]) -> "FormVersion":
        """The version of the stored document. ``events``: the audit events of the object."""
        return cls(hash_document(document), events.aggregate(last=Max("id"))["last"] or 0)

    @classmethod
    def sent(cls, data: QueryDict) -> "FormVersion":
        version, _, event = data.get("expected", "").partition(".")
        return cls(version, read_id(event))

    @property
    def expected(self) -> Expected:
        """None if the form sent no version; it then overwrites the stored values."""
        return frozenset([self.fingerprint]) if self.fingerprint else None

    def describe_later(self, events: QuerySet[AuditEvent]) -> list[tuple[AuditEvent, str]]:
        """The latest events since the form was rendered, each with its sentence."""
        if self.event is None:
            return []
        since = events.filter(id__gt=self.event).order_by("-id")
        return [(event, make_sentence(event)) for event in since[:MAX_EVENTS]]

    def __str__(self) -> str:
        return f"{self.fingerprint}.{self.event}"


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """A conflict as the form shows it: the events since it was rendered, and the stored values."""

    events: Sequence[tuple[AuditEvent, str]]
    now: Sequence[Any]  # sentences


def describe_differences(stored: BaseForm, entered: BaseForm) -> list[str]:
    """A sentence (``Root role: Viewer.``) for each field whose stored value differs from the entered one."""
    return [
        f"{field.label}: {describe_value(field)}."
        for field in stored
        if field.field.has_changed(field.initial, entered[field.name].data)
    ]


def describe_value(field: BoundField) -> str:
    value = field.initial
    if isinstance(field.field, JSONField):
        value = json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "yes" if value else "no"
    values = value if isinstance(value, list | tuple) else [value]
    labels = {str(key): label for key, label in getattr(field.field, "choices", ())}
    texts = [str(labels.get(str(item), item)) for item in values if item not in (None, "")]
    return clip(", ".join(texts), MAX_VALUE_LENGTH) or "empty"


class EditConflictMixin:
    """Detects edit conflicts on a page with a form.

    The page calls ``note_version`` once it has loaded the object, passes ``version.expected`` to the action,
    and passes errors of the action to ``show_conflict``. Submitting the form again then overwrites the values stored at
    that time.
    """

    request: HttpRequest
    version: FormVersion
    conflict: ShownConflict | None = None

    def get_events(self) -> QuerySet[AuditEvent]:
        """The audit events of the edited object."""
        raise NotImplementedError

    def get_current_document(self) -> Any:
        """The document that the action compares with the expected version."""
        raise NotImplementedError

    def sentences_now(self) -> Sequence[Any]:
        """Describes the stored values."""
        raise NotImplementedError

    def note_version(self) -> None:
        if self.request.method == "POST":
            self.version = FormVersion.sent(self.request.POST)
        else:
            self.version = FormVersion.of(self.get_current_document(), self.get_events())

    def check_version(self) -> None:
        """Raises EditConflict. The action checks again, under the lock."""
        check_expected(self.version.expected, self.get_current_document())

    def show_conflict(self, error: AppError) -> None:
        if isinstance(error, EditConflict):
            stored = FormVersion.of(error.current, self.get_events())
            self.conflict = ShownConflict(
                self.version.describe_later(self.get_events()), self.sentences_now()
            )
            self.version = stored

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        versions = {"expected": self.version, "conflict": self.conflict}
        return super().get_context_data(**{**versions, **kwargs})  # type: ignore[misc]
