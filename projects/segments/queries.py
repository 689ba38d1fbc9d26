"""Searches segments."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import find_best_matches
from groups.access import Caller
from projects.models import Segment


def search_segments(caller: Caller, words: Sequence[str]) -> QuerySet[Segment]:
    return find_best_matches(Segment.objects.readable_by(caller), words, "name", also=["description"])
