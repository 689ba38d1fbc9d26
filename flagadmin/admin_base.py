"""What all pages of the Django admin site ("Data fixes") have in common.

Nothing is saved or deleted here: a page's verbs (``create``, ``change``, ``remove``) hand over to the action
functions, so that locks, rules, permissions, audit events and revisions are those of the API. A page without a verb
cannot do it.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core import exceptions
from django.db.models import DateTimeField, JSONField, Model, QuerySet
from django.forms.models import BaseInlineFormSet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from rest_framework import serializers

from flagadmin.db.transactions import transactional
from flagadmin.errors import AppError, ValidationError, raised_by
from flagadmin.http.error_responses import problems_of
from groups.access import Caller
from groups.authentication import caller_of

MOST_NEW_ROWS = 50  # in one form of the rows below an object


class PrettyJsonField(forms.JSONField):
    """JSON over several lines, as people read it."""

    widget = forms.Textarea(
        attrs={"rows": 8, "cols": 100, "class": "vLargeTextField json", "spellcheck": "false"}
    )

    def __init__(self, **kwargs: Any) -> None:
        # A second, hidden copy of a document in the page would only make it larger.
        super().__init__(**kwargs | {"show_hidden_initial": False})

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, forms.fields.InvalidJSONInput):
            return value
        return json.dumps(value, indent=2, ensure_ascii=False)


class MomentInput(forms.DateTimeInput):
    """A moment, UTC, chosen as the browser offers it."""

    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(attrs={"step": 1}, format="%Y-%m-%dT%H:%M:%S")


class FixForm(forms.ModelForm):
    """Checks by the page's ``check_values`` what a model alone does not know; every problem is shown with its path."""

    page: ClassVar[Any] = None

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        if self.page is None or set(self.errors) - {exceptions.NON_FIELD_ERRORS}:
            return
        try:
            self.page.check_values(self.instance, self)
        except AppError as error:
            # Said in words, in place of the database constraint's name.
            self.errors.pop(exceptions.NON_FIELD_ERRORS, None)
            for text in sentences(error):
                self.add_error(None, text)


def sentences(error: AppError) -> list[str]:
    """An error for people: its problems with their places, or its message."""
    if len(error.details) > 1 and isinstance(error, ValidationError):
        return [f"{problem.path}: {problem.message}" for problem in error.details]
    return [error.message]


def checked_body(body: type[serializers.Serializer], data: Any, path: str = "", **kwargs: Any) -> Any:
    """JSON from a form, through the serializer that reads it in the API. Raises ValidationError with paths."""
    made = body(data=data, **kwargs)
    try:
        made.is_valid(raise_exception=True)
    except serializers.ValidationError as exc:
        raise ValidationError.of(problems_of(exc.detail, path)) from exc
    return made.validated_data


class Verbs:
    """What a page can do. ``form`` has what is no model field; ``changed`` are the form's changed fields."""

    helps: ClassVar[dict[str, str]] = {}  # help texts beside the models' own
    readonly_always: ClassVar[tuple[str, ...]] = ()
    fixed: ClassVar[tuple[str, ...]] = ()  # given at creation, never changed
    formfield_overrides: ClassVar[Any] = {
        JSONField: {"form_class": PrettyJsonField},
        # One field with a label of its own; the two of the stock admin have none.
        DateTimeField: {"form_class": forms.DateTimeField, "widget": MomentInput},
    }
    form: Any = FixForm

    create: Any = None
    change: Any = None
    remove: Any = None

    def check_values(self, obj: Any, form: forms.ModelForm) -> None:
        """Raises AppError for values that the rules refuse."""

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        field = super().formfield_for_dbfield(db_field, request, **kwargs)  # type: ignore[misc]
        if field is not None and db_field.name in self.helps:
            field.help_text = self.helps[db_field.name]
        return field

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.create is not None and is_admin(request)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.change is not None and is_admin(request)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.remove is not None and is_admin(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return is_admin(request)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (*self.readonly_always, *(self.fixed if obj is not None else ()))


def is_admin(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_staff", False))


class Fix(Verbs, admin.ModelAdmin):
    """A page of one model."""

    list_per_page = 50
    show_full_result_count = False
    save_on_top = True

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        form = super().get_form(request, obj, change=change, **kwargs)
        return type(form.__name__, (form,), {"page": self})

    # Every page that writes runs in one transaction of its own, tried again where PostgreSQL asks for it; what is
    # refused is said on the page it was asked on.

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._answered(request, super().changeform_view, *args, **kwargs)

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._answered(request, super().delete_view, *args, **kwargs)

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        return self._answered(request, super().changelist_view, *args, **kwargs)

    def _answered(self, request: HttpRequest, view: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        try:
            return transactional(view)(request, *args, **kwargs)
        except AppError as error:
            tell(request, error)
            return HttpResponseRedirect(request.get_full_path())

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """By its primary key too where an address has an empty ``_to_field``."""
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
        verb = self.change if change else self.create
        if verb is None:
            raise exceptions.PermissionDenied
        made = verb(obj, form, caller_of(request))
        if isinstance(made, Model) and made is not obj:
            obj.__dict__.update(made.__dict__)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Many-to-many fields are the verbs' business too."""
        for formset in formsets:
            self.save_formset(request, form, formset, change=change)

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        formset.save(commit=False)
        page, caller = formset.page, caller_of(request)
        for obj in formset.deleted_objects:
            page.remove(obj, None, caller)
        forms_by_obj = {id(inner.instance): inner for inner in formset.forms}
        for obj, _ in formset.changed_objects:
            page.change(obj, forms_by_obj[id(obj)], caller)
        for obj in formset.new_objects:
            page.create(obj, forms_by_obj[id(obj)], caller)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.delete_queryset(request, [obj])

    def delete_queryset(self, request: HttpRequest, queryset: Iterable[Any]) -> None:
        """One after the other, all or none."""
        if self.remove is None:
            raise exceptions.PermissionDenied
        for obj in queryset:
            self.remove(obj, None, caller_of(request))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """(what goes, counts, missing permissions, what stands against it), told by the page, not by a cascade."""
        told, against = [], []
        for obj in objs:
            told.append(self.told(obj))
            against += self.deletion_blockers(obj, caller_of(request))
        count = len(told)
        names = self.model._meta.verbose_name if count == 1 else self.model._meta.verbose_name_plural
        return told, {names: count}, set(), against

    def told(self, obj: Any) -> str:
        return f"{self.model._meta.verbose_name} {obj}".capitalize()

    def deletion_checks(self, obj: Any, caller: Caller) -> Iterable[Callable[[], object]]:
        """The checks that deleting this begins with. They read only."""
        return ()

    def deletion_blockers(self, obj: Any, caller: Caller) -> list[str]:
        """Sentences saying why this cannot be deleted; empty when it can."""
        errors = raised_by(*self.deletion_checks(obj, caller))
        return [sentence for error in errors for sentence in sentences(error)]

    # The audit trail is the record of changes; the admin site keeps no second one.

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        return []

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        return []

    def history_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return HttpResponseRedirect("/activity/")


class Fixes(BaseInlineFormSet):
    """Takes as many rows as there are and some more, however many a form claims to have."""

    page: ClassVar[Any] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.absolute_max = len(self.get_queryset()) + MOST_NEW_ROWS


class FixInline(Verbs, admin.StackedInline):
    """Rows that belong to a page's object, with verbs of their own."""

    extra = 0

    def get_formset(self, request: HttpRequest, obj: Any = None, **kwargs: Any) -> Any:
        kwargs.setdefault("formset", Fixes)
        formset = super().get_formset(request, obj, **kwargs)
        form = type(formset.form.__name__, (formset.form,), {"page": self})
        return type(formset.__name__, (formset,), {"page": self, "form": form})


class ReadOnly(Fix):
    """A page that only shows."""

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return tuple(field.name for field in self.model._meta.concrete_fields)


def tell(request: HttpRequest, error: AppError) -> None:
    for text in sentences(error):
        messages.error(request, text)


def bulk(
    name: str, description: str, act: Callable[[Any, Caller], Any]
) -> Callable[[admin.ModelAdmin, HttpRequest, QuerySet[Any]], None]:
    """A bulk action: ``act`` for each of the selected, all or none."""

    def run(page: admin.ModelAdmin, request: HttpRequest, selected: QuerySet[Any]) -> None:
        rows = list(selected)
        for obj in rows:
            act(obj, caller_of(request))
        messages.success(request, f"{description}: {len(rows)}.")

    run.__name__ = name
    # Offered to whoever may come here at all: a page of archived flags is not to be changed, but revived.
    return admin.action(description=description, permissions=["view"])(run)
