"""Lists the uses of a segment or a context field, with links, for its page and its delete page."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from django.http import HttpRequest
from django.urls import reverse

from flagadmin.core.lists.pages import Listing
from projects.console import flag_url, project_url
from projects.used_by.queries import Uses


class UseLine(NamedTuple):
    """A list item: ``name``, which links to ``url``, followed by ``where``."""

    name: str
    where: str
    page: Callable[..., str]
    arguments: tuple[Any, ...]

    @property
    def url(self) -> str:
        """Created only for visible lines, because there may be a hundred thousand."""
        return self.page(*self.arguments)


def use_lines(uses: Uses) -> list[UseLine]:
    return [
        *_make_strategies_line(uses["strategies"]),
        *(_make_flag_line(use, f"variants in {use['environment']}") for use in uses.get("variants", ())),
        *(
            _make_project_line(use["projectId"], f"default strategy in {use['environment']}")
            for use in uses["defaultStrategies"]
        ),
        *(_make_project_line(use["id"], "default stickiness") for use in uses.get("projects", ())),
        *(
            UseLine(f"Segment {use['name']}", "", _segment_url, (use["id"],))
            for use in uses.get("segments", ())
        ),
    ]


def _make_strategies_line(uses: Iterable[dict[str, Any]]) -> Iterator[UseLine]:
    """One line for all strategies of a flag in an environment."""
    places = Counter((use["projectId"], use["featureName"], use["environment"]) for use in uses)
    for (project, flag, environment), number in places.items():
        several = f"{number:,} strategies " if number > 1 else ""
        where = f"{several}in {environment}, project {project}"
        yield UseLine(flag, where, flag_url, (project, flag))


def _make_flag_line(use: dict[str, Any], where: str) -> UseLine:
    project, flag = use["projectId"], use["featureName"]
    return UseLine(flag, f"{where}, project {project}", flag_url, (project, flag))


def _make_project_line(project: str, where: str) -> UseLine:
    return UseLine(project, where, project_url, (project, "project-settings"))


def _segment_url(segment_id: int) -> str:
    return reverse("segment", args=[segment_id])


def paginate_uses(request: HttpRequest, uses: Uses) -> Listing[UseLine]:
    return Listing(request.GET, use_lines(uses), columns=())
