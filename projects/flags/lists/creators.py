"""Lists the creators of flags, for filters."""

from django.db.models import QuerySet
from django.db.models.functions import Lower

from groups.models import User
from projects.models import Flag

MAX_CREATORS = 10_000


def list_flag_creators(flags: QuerySet[Flag], *, limit: int = MAX_CREATORS) -> list[User]:
    """The accounts that created any of these flags, by user name. One query.

    Flags created by a token, or by a deleted account, have no creator.
    """
    creators = User.objects.filter(pk__in=flags.order_by().values("created_by")).order_by(Lower("username"))
    return list(creators[:limit])
