"""Base classes for the Django admin site ("Raw records"), which shows all data and fixes it.

A ``ModelAdmin`` here does not save or delete rows itself. Its ``create``, ``change`` and ``remove`` call actions, so
that locks, rules, permissions, audit events and revisions are the same as in the API. It does not offer an operation
whose attribute is None.

* ``SubjectAdmin``: rows whose actions follow the usual signatures, as most do.
* ``ActionModelAdmin`` and ``ActionInline``: rows whose actions have other signatures.
* ``ReadOnlyModelAdmin``: rows that are only shown. ``admin.site.register(Model, ReadOnlyModelAdmin, …)`` suffices.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import exceptions
from django.db.models import DateTimeField, JSONField, Model, QuerySet, TextField
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from rest_framework import serializers

from flagadmin.core.change_checks import Refusal
from flagadmin.core.change_checks.override import ask_what_to_do, changing_as_asked
from flagadmin.core.db.transactions import transactional
from flagadmin.core.edit_conflicts.forms import EditConflictAdmin, get_rejected_form
from flagadmin.core.errors import AppError, Problem, ValidationError, collect_errors
from flagadmin.core.templatetags.moments import exact
from groups.access import Caller
from groups.admin_site.forms import (
    ActionModelForm,
    BoundedFormAdmin,
    DateTimePicker,
    PrettyJsonField,
    find_long_fields,
    list_sentences,
    validate_body,
)
from groups.authentication import get_caller

MAX_NEW_ROWS = 50  # rows per inline formset
MAX_WARNINGS = 5
Step = tuple[Callable[..., object], Any]
"""A function that creates, changes or removes a row, and the row."""


class AdminActions:
    """The actions of a ``ModelAdmin`` or inline, each called as ``create(obj, form, caller)``."""

    extra_help_texts: ClassVar[dict[str, str]] = {}  # override the model's help texts
    readonly_always: ClassVar[tuple[str, ...]] = ()
    readonly_on_change: ClassVar[tuple[str, ...]] = ()  # can only be set on creation
    json_lists: ClassVar[
        Mapping[str, type[serializers.Serializer]]
    ] = {}  # the API's serializer of list members
    formfield_overrides: ClassVar[Any] = {
        JSONField: {"form_class": PrettyJsonField},
        # Django's split date and time inputs have no labels.
        DateTimeField: {"form_class": forms.DateTimeField, "widget": DateTimePicker, "help_text": "In UTC."},
    }
    form: Any = ActionModelForm

    create: Any = None
    change: Any = None
    remove: Any = None

    def check_values(self, obj: Any, form: forms.ModelForm) -> None:
        """Normalizes the values. Raises AppError for invalid ones."""
        for name, body in self.json_lists.items():
            setattr(obj, name, validate_body(body, getattr(obj, name), name, many=True))

    def values(self, obj: Any, names: Collection[str]) -> dict[str, Any]:
        """The values of these fields as actions take them: by column, such as ``project_id`` for ``project``."""
        fields = [field for field in obj._meta.concrete_fields if field.name in names]
        return {field.attname: getattr(obj, field.attname) for field in fields}

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if field is not None and db_field.name in self.extra_help_texts:
            field.help_text = self.extra_help_texts[db_field.name]
        if isinstance(db_field, TextField) and db_field.null:
            field.empty_value = None  # Django's value for a CharField
        return field

    def may_change(self, obj: Any) -> bool:
        """Whether this row can be changed here. For an inline, the row is the one shown on the page."""
        return True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.create is not None and is_admin(request) and self.may_change(obj)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.change is not None and is_admin(request) and self.may_change(obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.remove is not None and is_admin(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_always, *(self.readonly_on_change if obj is not None else ()))


def is_admin(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


class ActionModelAdmin(BoundedFormAdmin, AdminActions, EditConflictAdmin):
    """Creates, changes and deletes rows through actions. A page with ``change`` also defines ``lock``.

    Inline rows are edited once their row exists.
    """

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def get_list_display(self, request: HttpRequest) -> Any:
        return tuple(make_time_column(self.model, name) for name in super().get_list_display(request))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        rejected = get_rejected_form(request)
        conflict = rejected.error if rejected else None
        return type(form.__name__, (form,), {"page": self, "conflict": conflict})

    def get_inlines(self, request: HttpRequest, obj: Any) -> Any:
        return () if obj is None else super().get_inlines(request, obj)

    def lock(self, obj: Any, caller: Caller) -> object:
        """Locks the rows that the form shows, as the action does. Raises NotFound, NoAccess."""
        raise NotImplementedError

    def lock_rows(self, request: HttpRequest, obj: Any) -> object:
        return self.lock(obj, get_caller(request))

    # A POST runs in one transaction, which is retried on deadlocks. An error is shown as a message on the
    # same page.

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._run_in_transaction(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._run_in_transaction(request, super().delete_view, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._run_in_transaction(request, super().changelist_view, *args, **kwargs)

    def _run_in_transaction(
        self, request: HttpRequest, view: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Any:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        kept: list[Problem] = []
        try:
            with changing_as_asked(request, get_caller(request), keeps_unreadable=True, unreadable=kept):
                answer = transactional(view)(request, *args, **kwargs)
            for problem in kept[:MAX_WARNINGS]:
                messages.warning(request, f"Kept as it is: {problem.message}.")
            return answer
        except Refusal as error:
            return ask_what_to_do(request, error, get_caller(request))
        except AppError as error:
            show_error(request, error)
            return HttpResponseRedirect(request.get_full_path())

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Treats an empty ``_to_field`` parameter as absent."""
        return super().get_object(request, object_id, from_field or None)

    def response_action(
        self, request: HttpRequest, queryset: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse | None:
        for selected in request.POST.getlist(ACTION_CHECKBOX_NAME):
            try:
                self.model._meta.pk.to_python(selected or "-")
            except exceptions.ValidationError:
                raise ValidationError.at(
                    ACTION_CHECKBOX_NAME, f"{selected!r} is not one of these rows."
                ) from None
        return super().response_action(request, queryset, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        saved = (self.change if change else self.create)(obj, form, get_caller(request))
        if isinstance(saved, Model) and saved is not obj:
            obj.__dict__.update(saved.__dict__)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Leaves many-to-many fields to the actions."""
        for formset in formsets:
            self.save_formset(request, form, formset, change=change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        inline, caller = formset.page, get_caller(request)
        forms_by_obj = {id(row_form.instance): row_form for row_form in formset.forms}
        steps = [
            *((inline.remove, obj) for obj in formset.deleted_objects),
            *((inline.change, obj) for obj, _ in formset.changed_objects),
            *((inline.create, obj) for obj in formset.new_objects),
        ]
        for act, obj in inline.order(steps):
            act(obj, forms_by_obj[id(obj)], caller)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Iterable[Any]) -> None:
        """Deletes all of the selected rows or none."""
        for obj in queryset:
            self.remove(obj, None, get_caller(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Returns (deleted objects, counts, missing permissions, blockers).

        Unlike Django's version, it does not collect related objects.
        """
        labels, blockers = [], []
        for obj in objs:
            labels.append(self.deletion_label(obj))
            blockers += self.deletion_blockers(obj, get_caller(request))
        count = len(labels)
        names = self.model._meta.verbose_name if count == 1 else self.model._meta.verbose_name_plural
        return labels, {names: count}, set(), blockers

    def deletion_label(self, obj: Any) -> str:
        return f"{self.model._meta.verbose_name} {obj}".capitalize()

    def deletion_checks(self, obj: Any, caller: Caller) -> Iterable[Callable[[], object]]:
        """The checks that the delete action runs first. They must not write."""
        return ()

    def deletion_blockers(self, obj: Any, caller: Caller) -> list[str]:
        """The reasons why ``obj`` cannot be deleted, as sentences."""
        errors = collect_errors(*self.deletion_checks(obj, caller))
        return [sentence for error in errors for sentence in list_sentences(error)]

    # Changes are recorded in the audit log, so Django's LogEntry is not used.

    def construct_change_message(self, *args: Any, **kwargs: Any) -> Any:
        return []

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return []

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect(reverse("activity"))


def make_time_column(model: type[Model], name: Any) -> Any:
    """A column of times in the browser's zone, as on the other pages; leaves other columns unchanged."""
    field = next((field for field in model._meta.concrete_fields if field.name == name), None)
    if not isinstance(field, DateTimeField):
        return name

    @admin.display(description=field.verbose_name, ordering=name)
    def column(obj: Model) -> str | None:
        time = getattr(obj, name)
        return exact(time) if time else None

    column.__name__ = name
    return column


class BoundedInlineFormSet(BaseInlineFormSet):
    """A formset with an upper limit on its rows, whatever number the submitted form claims."""

    page: ClassVar[Any] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.absolute_max = len(self.get_queryset()) + MAX_NEW_ROWS


class ActionInline(AdminActions, admin.StackedInline):
    """An inline whose rows are created, changed and deleted through their own actions."""

    extra = 0
    offered: ClassVar[tuple[type[Model], ...]] = ()  # models whose rows are also edited in other fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return super().has_delete_permission(request, obj) and self.may_change(obj)

    def order(self, steps: Iterable[Step]) -> Iterable[Step]:
        """Orders the steps that save the rows."""
        return steps

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs.setdefault("formset", BoundedInlineFormSet)
        formset = super().get_formset(request, obj, **kwargs)
        form = type(formset.form.__name__, (formset.form,), {"page": self})
        return type(formset.__name__, (formset,), {"page": self, "form": form})


class ReadOnlyModelAdmin(ActionModelAdmin):
    """Shows records, without the fields in ``exclude``, but does not allow changes."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[Any, ...]:
        names = (field.name for field in self.model._meta.concrete_fields)
        return (
            *(name for name in names if name not in (self.exclude or ())),
            *find_long_fields(obj).values(),
        )


def show_error(request: HttpRequest, error: AppError) -> None:
    for text in list_sentences(error):
        messages.error(request, text)


def make_bulk_action(
    name: str, description: str, act: Callable[[list[Any], Caller], Any]
) -> Callable[[admin.ModelAdmin, HttpRequest, QuerySet[Any]], None]:
    """Returns an admin action that calls ``act`` with the selected rows, in one transaction."""

    def run(page: admin.ModelAdmin, request: HttpRequest, selected: QuerySet[Any]) -> None:
        rows = list(selected)
        act(rows, get_caller(request))
        messages.success(request, f"{description}: {len(rows)}.")

    run.__name__ = name
    # "view" rather than "change": archived flags cannot be changed but can be revived.
    return admin.action(description=description, permissions=["view"])(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The actions of a subject. Actions on one row take its primary key; new and changed values are given by column."""

    create: Callable[..., Model] | None = None
    update: Callable[..., object]
    delete: Callable[..., object]
    lock: Callable[[Caller, Any], object]
    check: Callable[[Any], object] | None = None
    deletion_checks: tuple[Callable[[Any], object], ...] = ()


class SubjectAdmin(ActionModelAdmin):
    """Creates, changes and deletes rows through the actions of their subject."""

    subject: ClassVar[Subject]

    def lock(self, obj: Any, caller: Caller) -> object:
        return self.subject.lock(caller, obj.pk)

    def check_values(self, obj: Any, form: forms.ModelForm) -> None:
        super().check_values(obj, form)
        if self.subject.check is not None:
            self.subject.check(obj)

    def create(self, obj: Any, form: Any, caller: Caller) -> Any:
        assert self.subject.create is not None
        return self.subject.create(self.values(obj, form.cleaned_data), caller=caller)

    def change(self, obj: Any, form: Any, caller: Caller) -> None:
        if changes := self.values(obj, form.changed_data):
            self.subject.update(obj.pk, changes, caller=caller)

    def remove(self, obj: Any, form: Any, caller: Caller) -> None:
        self.subject.delete(obj.pk, caller=caller)

    def deletion_checks(self, obj: Any, caller: Caller) -> Iterable[Callable[[], object]]:
        return [partial(check, obj) for check in self.subject.deletion_checks]
