"""Querysets of the models whose rows belong to a project."""

from typing import Self, TypeVar

from django.db.models import Model, Q, QuerySet

from groups.access import Caller

M = TypeVar("M", bound=Model)


class ArchivableQuerySet(QuerySet[M]):
    def active(self) -> Self:
        return self.archived(False)

    def archived(self, is_archived: bool = True) -> Self:
        """The archived rows; with False, the active ones."""
        return self.filter(archived_at__isnull=not is_archived)


class SharedQuerySet(QuerySet[M]):
    """Rows that are global or belong to one project."""

    def readable_by(self, caller: Caller) -> Self:
        """Global rows, and rows of projects that the caller may read."""
        readable = caller.match_readable("project_id")
        return self.filter(Q(project=None) | readable) if readable else self.all()

    def usable_in(self, *project_ids: str) -> Self:
        """Global rows, and rows of these projects."""
        return self.filter(Q(project=None) | Q(project_id__in=project_ids))
