"""Filters and sort orders of the applications lists."""

from django.db.models import Q, QuerySet

from flagadmin.core.http.list_queries import ListFilter, sort_keys, terms_of
from projects.applications import queries


class ProjectApplicationFilter(ListFilter):
    sortBy = sort_keys(*queries.SORT_KEYS)

    def keep_matches(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        return queries.search(rows, terms_of(value))


class ApplicationFilter(ListFilter):
    default_limit = 1000
    sortBy = sort_keys("appName")

    def keep_matches(self, rows: QuerySet, name: str, value: str) -> QuerySet:
        matches = Q()
        for term in terms_of(value):
            matches |= Q(folded_name__contains=term.casefold())
        return rows.filter(matches)
