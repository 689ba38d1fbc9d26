"""Searches context fields."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import find_best_matches
from groups.access import Caller
from projects.models import ContextField


def search_context_fields(caller: Caller, words: Sequence[str]) -> QuerySet[ContextField]:
    return find_best_matches(ContextField.objects.readable_by(caller), words, "name", also=["description"])
