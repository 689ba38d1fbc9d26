"""Searches strategy types."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import find_best_matches
from groups.access import Caller
from projects.models import StrategyType


def search_strategy_types(caller: Caller, words: Sequence[str]) -> QuerySet[StrategyType]:
    """Strategy types by name or title. Every caller may read them."""
    return find_best_matches(StrategyType.objects.all(), words, "name", "title", also=["description"])
