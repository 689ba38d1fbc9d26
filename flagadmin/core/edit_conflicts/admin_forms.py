"""Edit conflicts in the admin site's change forms, inline rows included.

The version of a change form is the fingerprint of all values that it shows. It is compared with the stored values
once the rows are locked.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.forms import ModelForm
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, QueryDict

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.edit_conflicts import check_expected
from flagadmin.core.edit_conflicts.forms import FormVersion, ShownConflict, describe_differences
from flagadmin.core.errors import EditConflict


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
