"""People who have not been seen for half a year: finds and deletes them."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from flagadmin.core.db.transactions import transactional
from flagadmin.core.errors import Problem, check_problems
from groups.access import Caller
from groups.models import User
from groups.people.actions import delete_account
from groups.permissions import Permission

INACTIVE_AFTER = timedelta(days=180)


def read_inactive_people(caller: Caller) -> QuerySet[User]:
    """The users created more than 180 days ago who since then neither logged in nor used a personal token.

    Each with ``token_seen_at``. Raises NoAccess.
    """
    caller.check(Permission.ADMIN)
    limit = timezone.now() - INACTIVE_AFTER
    users = User.objects.people().filter(created_at__lt=limit).annotate(token_seen_at=Max("tokens__seen_at"))
    has_been_away = Q(seen_at=None) | Q(seen_at__lt=limit)
    has_idle_tokens = Q(token_seen_at=None) | Q(token_seen_at__lt=limit)
    return users.filter(has_been_away, has_idle_tokens).order_by("id")


@transactional
def delete_inactive_people(user_ids: Iterable[int], *, caller: Caller) -> None:
    """Deletes these users, all or none.

    Raises NoAccess, ValidationError (somebody is not inactive), InvalidOperation (no admin would remain).
    """
    inactive_ids = set(read_inactive_people(caller).values_list("id", flat=True))
    listed_ids = list(dict.fromkeys(user_ids))
    check_problems(
        Problem(f"ids[{index}]", f"No inactive user has the id {user_id}.")
        for index, user_id in enumerate(listed_ids)
        if user_id not in inactive_ids
    )
    for user_id in listed_ids:
        delete_account(user_id, is_service=False, caller=caller)
