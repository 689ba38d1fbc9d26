"""There is always somebody left who may do everything, and nobody takes that right from themselves by mistake."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import Q, QuerySet

from flagadmin.errors import InvalidOperation
from groups.access import Caller
from groups.models import Role, User
from groups.permissions import BuiltIn


def admins() -> QuerySet[User]:
    """The people who can log in and hold the Admin role, themselves or through a group."""
    holds = Q(root_role=BuiltIn.ADMIN.value) | Q(groups__root_role=BuiltIn.ADMIN.value)
    return User.objects.filter(holds, is_active=True, is_service=False)


@contextmanager
def keeping_admins(caller: Caller) -> Iterator[None]:
    """Around every change that could take the Admin role from somebody. Raises InvalidOperation at its end.

    Such changes happen one after the other: two admins who remove each other cannot both succeed.
    """
    list(Role.objects.select_for_update(no_key=True).filter(id=BuiltIn.ADMIN.value))
    before = set(admins().values_list("id", flat=True))
    with transaction.atomic():
        yield
        after = set(admins().values_list("id", flat=True))
        if before and not after:
            raise InvalidOperation(
                "This would leave nobody with the Admin role who can log in. Give it to somebody else first."
            )
        if caller.id in before - after:
            raise InvalidOperation("You would lose the Admin role by this. Ask another admin to do it.")
