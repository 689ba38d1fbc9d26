"""Reads payload schemas and the payloads that they apply to, and refuses changes after which one does not satisfy its
schema.

`projects.access` starts that for each locked project that has schemas, so that it covers every way of changing flags:
the API, forms, imports, flags as code, promotions, reverts, change requests and release plans.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from django.db.models import Q

from flagadmin.core.db.statements import fetch_row
from flagadmin.core.db.transactions import make_at_end_of_action
from flagadmin.core.errors import MAX_DETAILS, Problem, check_problems
from projects.flags.payloads.rules import PayloadCheck
from projects.models import FlagEnvironment, PayloadSchema, Strategy
from projects.models.versions import NEVER, FlagEnvironmentVersion, StrategyVersion


def read_schemas(names: Collection[str]) -> dict[str, Any]:
    """The schemas of those flags that have one, by the flags' names. One query."""
    rows = PayloadSchema.objects.filter(flag__name__in=list(names))
    return dict(rows.values_list("flag__name", "schema"))


def stored_problems(
    project_id: str, names: Collection[str], *, with_changed: bool = False
) -> Iterator[Problem]:
    """Problems of the stored payloads of flags in a project against their schemas. At most six queries.

    Of these flags and, ``with_changed``, of those whose variants may have changed in the running transaction: most
    changes of a whole project change none.
    """
    schemas = PayloadSchema.objects.filter(flag__project=project_id)
    chosen = Q(flag__name__in=list(names))
    if with_changed:
        chosen |= Q(flag__in=_find_changed(list(schemas.values_list("flag_id", flat=True))))
    schemas = schemas.filter(chosen)
    places = read_variants(list(schemas.values_list("flag_id", flat=True)))
    check = PayloadCheck()
    for flag_id, schema in schemas.values_list("flag_id", "schema"):
        yield from check.flag_problems(schema, places[flag_id])


def read_variants(flags: Collection[int], *, without: str = "") -> Mapping[int, list[tuple[str, Any]]]:
    """The variants of flags by the flag's id, each list with its path. Two queries.

    ``without`` an environment.
    """
    places: defaultdict[int, list[tuple[str, Any]]] = defaultdict(list)
    for rows, words in (
        (FlagEnvironment.objects.filter(flag__in=flags), "{}.{}.variants"),
        (Strategy.objects.filter(flag__in=flags).order_by("sort_order", "pk"), "{}.{}.strategies.variants"),
    ):
        named = rows.exclude(environment=without).values_list(
            "flag_id", "flag__name", "environment_id", "variants"
        )
        for flag_id, name, environment, variants in named:
            places[flag_id].append((words.format(name, environment), variants))
    return places


def _find_changed(flags: Collection[int]) -> set[int]:
    """Those of the flags of which the running transaction has changed a strategy or an environment."""
    now = {"valid_from__gte": fetch_row("SELECT audit_moment()")[0], "valid_to": NEVER}
    return {
        flag_id
        for versions in (FlagEnvironmentVersion, StrategyVersion)
        for flag_id in versions.objects.filter(flag_id__in=flags, **now).values_list("flag_id", flat=True)
    }


def check_stored(project_id: str, names: Collection[str], *, with_changed: bool = False) -> None:
    """Raises ValidationError with the first problems of stored payloads."""
    check_problems(islice(stored_problems(project_id, names, with_changed=with_changed), MAX_DETAILS))


class _AtEnd:
    def __init__(self) -> None:
        self._flags: defaultdict[str, set[str]] = defaultdict(set)
        self._with_changed: set[str] = set()

    def add(self, project_id: str, flags: Collection[str] | None) -> None:
        self._flags[project_id].update(flags or ())
        if flags is None:
            self._with_changed.add(project_id)

    def __call__(self) -> None:
        for project_id, flags in self._flags.items():
            check_stored(project_id, flags, with_changed=project_id in self._with_changed)


def check_at_end(project_id: str, flags: Collection[str] | None) -> None:
    """Checks these flags of the project, or all that have changed, at the end of the running action.

    Then the action raises ValidationError.
    """
    if at_end := make_at_end_of_action(_AtEnd):
        at_end.add(project_id, flags)
