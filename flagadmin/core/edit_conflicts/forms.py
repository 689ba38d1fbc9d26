"""Edit conflicts in forms: a form sends the version that it was rendered from in a hidden field.

Edit conflicts in the admin site's change forms, inline rows included.

The version of a change form is the fingerprint of all values that it shows. It is compared with the stored values
once the rows are locked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import Max, QuerySet
from django.forms import BaseForm, BoundField, JSONField, ModelForm
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, QueryDict

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.audit.sentences import make_sentence
from flagadmin.core.edit_conflicts import Expected, check_expected, hash_document
from flagadmin.core.errors import AppError, EditConflict, clip
from flagadmin.core.http.fields import read_id

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


@dataclass(frozen=True, slots=True)
class ShownForms:
    """The form of an object and the formsets of its inlines."""

    form: ModelForm
    formsets: Sequence[BaseInlineFormSet]

    def values(self) -> str:
        """The stored values in all fields, as JSON."""
        forms = [self.form, *(row for formset in self.formsets for row in formset.initial_forms)]
        return json.dumps([(form.instance.pk, read_initial_values(form)) for form in forms], default=str)


def read_initial_values(form: ModelForm) -> dict[str, Any]:
    return {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}


@dataclass(frozen=True, slots=True)
class Rejected:
    """A submitted form that was not saved, because ``stored`` has changed since it was rendered."""

    error: EditConflict
    obj: Any
    stored: ShownForms

    def has_rows_of(self, prefix: str, data: QueryDict) -> bool:
        """Whether the submitted rows of a formset are the stored ones."""
        formset: Any = next(formset for formset in self.stored.formsets if formset.prefix == prefix)
        before, after = f"{prefix}-", f"-{formset.model._meta.pk.name}"
        rows = (name for name in data if name.removeprefix(before).removesuffix(after).isdecimal())
        sent = {data[name] for name in rows} - {""}
        return sent == {str(form.instance.pk) for form in formset.initial_forms}


class EditConflictAdmin(admin.ModelAdmin):
    """Detects edit conflicts in the change form.

    After a conflict, the form shows the entered values beside the stored ones. Submitting it again overwrites those.
    """

    event_types: ClassVar[Sequence[EventType]] = ()  # the types of changes to an object

    def lock_rows(self, request: HttpRequest, obj: Any) -> object:
        """Locks the rows shown in the form, as the action does. Raises NotFound, NoAccess."""
        raise NotImplementedError

    def get_events(self, obj: Any) -> QuerySet[AuditEvent]:
        """The audit events of changes to ``obj``."""
        return AuditEvent.objects.filter(type__in=self.event_types, subject=str(obj))

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        if request.method == "POST":
            request.rejected = self.find_rejected(request, object_id)  # type: ignore[attr-defined]
        response = super().changeform_view(request, object_id, *args, **kwargs)
        if rejected := get_rejected_form(request):
            response.status_code = rejected.error.status
        return response

    def find_rejected(self, request: HttpRequest, object_id: str | None) -> Rejected | None:
        if object_id is None:
            return None
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_change_permission(request, obj):
            return None
        self.lock_rows(request, obj)
        obj = self.get_object(request, unquote(object_id))
        stored = self.make_stored_forms(request, obj)
        try:
            check_expected(FormVersion.sent(request.POST).expected, stored.values())
        except EditConflict as error:
            return Rejected(error, obj, stored)
        return None

    def make_stored_forms(self, request: HttpRequest, obj: Any) -> ShownForms:
        formsets = [
            formset(instance=obj, queryset=inline.get_queryset(request))
            for formset, inline in self.get_formsets_with_inlines(request, obj)
        ]
        return ShownForms(self.get_form(request, obj, change=True)(instance=obj), formsets)

    def get_formset_kwargs(self, request: HttpRequest, obj: Any, inline: Any, prefix: str) -> dict[str, Any]:
        """After a conflict, drops submitted rows if the stored rows differ, because they could not be matched."""
        kwargs = super().get_formset_kwargs(request, obj, inline, prefix)
        rejected = get_rejected_form(request)
        if rejected and not rejected.has_rows_of(prefix, request.POST):
            kwargs |= {"data": None, "files": None}
        return dict(kwargs)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> Any:
        obj = context["original"]
        if obj is not None and self.has_change_permission(request, obj):
            formsets = [inline.formset for inline in context["inline_admin_formsets"]]
            context |= self.make_versions(request, obj, ShownForms(context["adminform"].form, formsets))
        return super().render_change_form(request, context, *args, **kwargs)

    def make_versions(self, request: HttpRequest, obj: Any, shown: ShownForms) -> dict[str, Any]:
        """The template variables of ``includes/edit_conflict.html``, and the error in place of Django's."""
        if request.method != "POST":
            return {"expected": FormVersion.of(shown.values(), self.get_events(obj))}
        sent = FormVersion.sent(request.POST)
        rejected = get_rejected_form(request)
        if rejected is None:
            return {"expected": sent}
        events = self.get_events(rejected.obj)
        now = list(sentences_now(rejected.stored, shown))
        return {
            "expected": FormVersion.of(rejected.error.current, events),
            "conflict": ShownConflict(sent.describe_later(events), now),
            "refusal": rejected.error,
            "errors": None,
        }


def get_rejected_form(request: HttpRequest) -> Rejected | None:
    return getattr(request, "rejected", None)


def sentences_now(stored: ShownForms, entered: ShownForms) -> Iterator[str]:
    """Describes the stored values that differ from the entered ones."""
    yield from describe_differences(stored.form, entered.form)
    for formset, entered_formset in zip(stored.formsets, entered.formsets, strict=True):
        if not entered_formset.is_bound:
            yield "Rows were added or removed. Below, they are shown as they are now."
            continue
        forms = {form.instance.pk: form for form in entered_formset.initial_forms}
        for row in formset.initial_forms:
            row.fields.pop("DELETE", None)
            yield from (
                f"{row.instance}: {text}" for text in describe_differences(row, forms[row.instance.pk])
            )
