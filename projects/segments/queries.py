"""Searches segments."""

from collections.abc import Sequence

from django.db.models import QuerySet

from flagadmin.core.db.matching import best_matches
from groups.access import Caller
from projects.models import Segment
from projects.project_scope import visible


def search_segments(caller: Caller, words: Sequence[str]) -> QuerySet[Segment]:
    return best_matches(visible(Segment.objects.all(), caller), words, "name", also=["description"])
