"""Tickets in comments: a project's patterns turn parts of them into links."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.change_checks.comments import MAX_LENGTH
from flagadmin.core.errors import Problem
from playground.engine import patterns
from projects.flags.links.rules import normalize_url
from projects.history.descriptions import Part
from projects.models import Project

MATCH = "{match}"
"""Stands in a URL for what the pattern has matched, or its first group if it has one."""
MAX_LINKS = 5
"""Patterns of a project."""
MAX_PATTERN_LENGTH = 200
MAX_LINKED = 20
"""Links in one comment."""
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
        if problem := _find_url_problem(link["url"]):
            yield Problem(f"commentLinks[{index}].url", problem)


def _find_pattern_problem(pattern: Any) -> str | None:
    if not isinstance(pattern, str) or not pattern:
        return "a pattern is required"
    if len(pattern) > MAX_PATTERN_LENGTH:
        return f"must have at most {MAX_PATTERN_LENGTH} characters"
    if fault := patterns.find_fault(pattern, captures=True):
        return f"{pattern} {fault}"
    if patterns.find_longest_text(pattern) < MAX_LENGTH:
        return f"{pattern} is too complex"
    if patterns.compile_pattern(pattern, captures=True).search(""):
        return f"{pattern} matches an empty text"
    return None


def _find_url_problem(url: Any) -> str | None:
    """The address must be complete without the match, which goes into its path, query or fragment."""
    if not isinstance(url, str) or MATCH not in url:
        return f"must contain {MATCH}, as in https://tickets.example.com/{MATCH}"
    example = url.replace(MATCH, "1")
    if not url.startswith(("https://", "http://")) or normalize_url(example) is None:
        return f"{url} is not a web URL"
    if MATCH in urlsplit(url).netloc:
        return f"must have {MATCH} after the host"
    return None


def split_comment(comment: str, links: Iterable[CommentLink]) -> list[Part]:
    """The comment in parts, of which those that a pattern matches are links. The first pattern counts."""
    matches: list[tuple[int, int, str]] = []
    for link in links:
        expression = patterns.compile_pattern(link["pattern"], captures=True)
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
