"""Links that every new flag of a project gets, such as a search for its name in the code."""

from collections.abc import Iterator, Mapping
from typing import Any

from flagadmin.core.errors import Problem
from projects.flags.links.rules import normalize_url
from projects.limits import Limits

FEATURE, PROJECT = "{{feature}}", "{{project}}"
MAX_TITLE_LENGTH = 255
LinkTemplate = Mapping[str, Any]
"""``{"title", "urlTemplate"}``; the title may be None."""


def link_template_problems(templates: Any) -> Iterator[Problem]:
    if not isinstance(templates, list):
        yield Problem("linkTemplates", "must be a list")
        return
    limit = Limits.from_settings().links
    if len(templates) > limit:
        yield Problem("linkTemplates", f"must have at most {limit} entries, not {len(templates)}")
    for index, template in enumerate(templates[:limit]):
        path = f"linkTemplates[{index}]"
        if not isinstance(template, dict) or {*template} != {"title", "urlTemplate"}:
            yield Problem(path, "must have a title and a urlTemplate")
            continue
        if problem := _find_url_problem(template["urlTemplate"]):
            yield Problem(f"{path}.urlTemplate", problem)
        title = template["title"]
        if title is not None and not (isinstance(title, str) and len(title) <= MAX_TITLE_LENGTH):
            yield Problem(
                f"{path}.title", f"must be a string of at most {MAX_TITLE_LENGTH} characters, or null"
            )


def _find_url_problem(url: Any) -> str | None:
    """Names of flags and ids of projects have only characters that may stand in a URL."""
    if isinstance(url, str) and normalize_url(_fill_in(url, "project", "feature")) is not None:
        return None
    return (
        f"must be a web URL, in which {FEATURE} and {PROJECT} stand for the flag's name and the project's id"
    )


def make_links(templates: Any, *, project: str, feature: str) -> Iterator[tuple[str, str | None]]:
    """The URL and title of each link that a flag gets."""
    for template in templates:
        url = normalize_url(_fill_in(template["urlTemplate"], project, feature))
        if url is not None:  # a long name can make it too long
            yield url, template["title"] or None


def _fill_in(url: str, project: str, feature: str) -> str:
    return url.replace(PROJECT, project).replace(FEATURE, feature)
