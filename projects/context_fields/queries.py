"""Searches context fields."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from projects.models import ContextField
from projects.project_scope import visible


def search_context_fields(caller: Caller, words: Sequence[str]) -> QuerySet[ContextField]:
    return best_matches(visible(ContextField.objects.all(), caller), words, "name", also=["description"])
