"""Links of a project: patterns that link parts of comments to tickets, and links for every new flag."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks.comments import MAX_LENGTH
from flagadmin.core.errors import Problem
from playground.engine import operators
from projects.flags.links.rules import normalize_url
from projects.history.descriptions import Part
from projects.models import Project
from projects.rules import Limits

MATCH = "{match}"
"""Placeholder in a URL for the pattern's match, or its first group if it has one."""
MAX_LINKS = 5
"""Patterns per project."""
MAX_PATTERN_LENGTH = 200
MAX_LINKED = 20
"""Links per comment."""
CommentLink = Mapping[str, str]
"""``{"pattern", "url"}``"""


def comment_link_problems(links: Any) -> Iterator[Problem]:
    if not isinstance(links, list):
        yield Problem("commentLinks", "must be a list")
        return
    if len(links) > MAX_LINKS:
        yield Problem("commentLinks", f"must have at most {MAX_LINKS} entries, not {len(links)}")
    for index, link in enumerate(links[:MAX_LINKS]):
        if not isinstance(link, dict) or {*link} != {"pattern", "url"}:
            yield Problem(f"commentLinks[{index}]", "must have a pattern and a url")
            continue
        if problem := _find_pattern_problem(link["pattern"]):
            yield Problem(f"commentLinks[{index}].pattern", problem)
        if problem := _find_problem_of_ticket_url(link["url"]):
            yield Problem(f"commentLinks[{index}].url", problem)


def _find_pattern_problem(pattern: Any) -> str | None:
    if not isinstance(pattern, str) or not pattern:
        return "a pattern is required"
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"must have at most {MAX_PATTERN_LENGTH} characters"
    if fault := operators.find_fault(pattern, captures=True):
        return f"{pattern} {fault}"
    if operators.find_longest_text(pattern) < MAX_LENGTH:
        return f"{pattern} is too complex"
    if operators.compile_pattern(pattern, captures=True).search(""):
        return f"{pattern} matches an empty text"
    return None


def _find_problem_of_ticket_url(url: Any) -> str | None:
    """The URL must be complete without the match, which goes into its path, query or fragment."""
    if not isinstance(url, str) or MATCH not in url:
        return f"must contain {MATCH}, as in https://tickets.example.com/{MATCH}"
    example = url.replace(MATCH, "1")
    if not url.startswith(("https://", "http://")) or normalize_url(example) is None:
        return f"{url} is not a web URL"
    if MATCH in urlsplit(url).netloc:
        return f"must have {MATCH} after the host"
    return None


def split_comment(comment: str, links: Iterable[CommentLink]) -> list[Part]:
    """The comment in parts, with matches of patterns as links. The first matching pattern applies."""
    matches: list[tuple[int, int, str]] = []
    for link in links:
        expression = operators.compile_pattern(link["pattern"], captures=True)
        for match in expression.finditer(comment) if expression else ():
            start, end = match.span()
            if start < end and all(end <= first or last <= start for first, last, _ in matches):
                named = match.group(1) if expression.groups else None
                matches.append(
                    (start, end, link["url"].replace(MATCH, quote(named or match.group(), safe="")))
                )
            if len(matches) == MAX_LINKED:
                break
    parts, position = [], 0
    for start, end, url in sorted(matches):
        parts += [Part(comment[position:start]), Part(comment[start:end], url)]
        position = end
    return [part for part in (*parts, Part(comment[position:])) if part.text]


def read_comments(events: Iterable[AuditEvent]) -> dict[int, Sequence[Part]]:
    """The comments of these events by their ids, in parts. One query if there are any."""
    commented = [event for event in events if event.comment]
    projects = {event.project for event in commented}
    links = (
        dict(Project.objects.filter(pk__in=projects).values_list("pk", "comment_links")) if projects else {}
    )
    return {event.pk: split_comment(event.comment, links.get(event.project or "", ())) for event in commented}


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
        if problem := _find_problem_of_template(template["urlTemplate"]):
            yield Problem(f"{path}.urlTemplate", problem)
        title = template["title"]
        if title is not None and not (isinstance(title, str) and len(title) <= MAX_TITLE_LENGTH):
            yield Problem(
                f"{path}.title", f"must be a string of at most {MAX_TITLE_LENGTH} characters, or null"
            )


def _find_problem_of_template(url: Any) -> str | None:
    """Flag names and project ids contain only characters that are allowed in a URL."""
    if isinstance(url, str) and normalize_url(_fill_in(url, "project", "feature")) is not None:
        return None
    return (
        f"must be a web URL, in which {FEATURE} and {PROJECT} stand for the flag's name and the project's id"
    )


def make_links(templates: Any, *, project: str, feature: str) -> Iterator[tuple[str, str | None]]:
    """The URL and title of each link for a flag."""
    for template in templates:
        url = normalize_url(_fill_in(template["urlTemplate"], project, feature))
        if url is not None:  # a long name can make it too long
            yield url, template["title"] or None


def _fill_in(url: str, project: str, feature: str) -> str:
    return url.replace(PROJECT, project).replace(FEATURE, feature)
