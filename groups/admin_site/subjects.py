"""The base class of most pages of the admin site: those of subjects whose actions are all called alike."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.db.models import Model

from groups.access import Caller
from groups.admin_site.base import ActionModelAdmin


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The actions of a subject. Those for one row take its primary key; new and changed values are by column."""

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
