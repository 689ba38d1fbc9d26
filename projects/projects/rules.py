"""Validates a project's id, name, settings and naming pattern for flags."""

from collections.abc import Collection, Iterator

from flagadmin.core.errors import Problem
from flagadmin.core.wording import choices, clip
from playground.engine import patterns
from projects.flags.name_rules import find_pattern_problem
from projects.models import Project
from projects.projects.links import comment_link_problems, link_template_problems
from projects.rules import name_problems

MAX_PROJECT_NAME_LENGTH = 255
MAX_FLAGS = 2**31 - 1
# Used in place of a project id in URLs below /api/admin/projects/ and /projects/.
RESERVED_PROJECT_IDS = frozenset({"archive", "revive", "roles", "validate", "new"})


def project_problems(project: Project, *, stickiness: Collection[str]) -> Iterator[Problem]:
    """Problems with a project's settings. ``stickiness`` holds the valid names for the default stickiness."""
    yield from name_problems(project.pk, "id", reserved=RESERVED_PROJECT_IDS)
    if not project.name.strip():
        yield Problem("name", "a name is required")
    elif len(project.name) > MAX_PROJECT_NAME_LENGTH:
        yield Problem("name", f"must have at most {MAX_PROJECT_NAME_LENGTH} characters")
    if project.default_stickiness not in stickiness:
        known = choices(stickiness)
        yield Problem(
            "defaultStickiness", f"context field {project.default_stickiness} not found. Available: {known}"
        )
    if project.flag_limit is not None and not 1 <= project.flag_limit <= MAX_FLAGS:
        yield Problem("featureLimit", f"must be from 1 to {MAX_FLAGS}, or null for no limit")
    yield from naming_problems(project)
    yield from comment_link_problems(project.comment_links)
    yield from link_template_problems(project.link_templates)


def naming_problems(project: Project) -> Iterator[Problem]:
    """The pattern must be valid for RE2, which runs in linear time; the example must match the pattern."""
    pattern, example = project.naming_pattern, project.naming_example
    if pattern and (fault := patterns.find_fault(pattern)):
        yield Problem("featureNaming.pattern", f"{clip(pattern)} {fault}")
    elif pattern and example and find_pattern_problem(example, project):
        yield Problem("featureNaming.example", f"{example} does not match the pattern {pattern}")
    elif not pattern and example:
        yield Problem("featureNaming.example", "an example requires a pattern")
    elif not pattern and project.naming_description:
        yield Problem("featureNaming.description", "a description requires a pattern")
