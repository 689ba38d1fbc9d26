"""Lists what uses a segment or a context field, with links, for its page and its delete page."""

from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from flagadmin.console.lists import Listing
from projects.console import flag_url, project_url
from projects.used_by import Uses


@dataclass(frozen=True, slots=True)
class UseLine:
    """A list item: ``name``, which links to ``url``, followed by ``where``."""

    name: str
    url: str
    where: str


def use_lines(uses: Uses) -> list[UseLine]:
    return [
        *(
            UseLine(use["featureName"], flag_url(use["projectId"], use["featureName"]), where)
            for use in uses["strategies"]
            for where in [f"in {use['environment']}, project {use['projectId']}"]
        ),
        *(
            UseLine(use["featureName"], flag_url(use["projectId"], use["featureName"]), where)
            for use in uses.get("variants", ())
            for where in [f"variants in {use['environment']}, project {use['projectId']}"]
        ),
        *(
            UseLine(use["projectId"], project_url(use["projectId"], "project-settings"), where)
            for use in uses["defaultStrategies"]
            for where in [f"default strategy in {use['environment']}"]
        ),
        *(
            UseLine(use["id"], project_url(use["id"], "project-settings"), "default stickiness")
            for use in uses.get("projects", ())
        ),
        *(
            UseLine(f"Segment {use['name']}", reverse("segment", args=[use["id"]]), "")
            for use in uses.get("segments", ())
        ),
    ]


def paged_uses(request: HttpRequest, uses: Uses) -> Listing[UseLine]:
    return Listing(request.GET, use_lines(uses), columns=())
