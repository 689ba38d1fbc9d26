"""Searches API tokens."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import find_best_matches
from flagadmin.core.errors import NoAccess
from groups.access import Caller
from groups.models import ApiToken
from projects.tokens.access import find_visible_tokens


def search_tokens(caller: Caller, words: Sequence[str]) -> QuerySet[ApiToken]:
    """API tokens by name, never by their secret."""
    try:
        return find_best_matches(find_visible_tokens(caller), words, "name", first=["-created_at"])
    except NoAccess:
        return ApiToken.objects.none()
