"""Pending imports as states to compare. The importer registers itself here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from groups.access import Caller
from playground.models import SavedContext
from projects.definitions import Definitions


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """What an import would make of the flags of a project in an environment.

    ``names`` are the flags that would be something else, ``documents`` those of them that there would be, with their
    segments. ``saved_contexts`` are the stored ones that it changes, as they would be, by name. ``url`` explains what
    one context gets, ``notes`` say what is to be known about it.
    """

    project: str
    environment: str
    names: frozenset[str]
    documents: Definitions
    saved_contexts: Mapping[str, SavedContext] = field(default_factory=dict)
    url: str = ""
    notes: Sequence[str] = ()

    def applied(self, now: Definitions, wanted: set[str]) -> Definitions:
        """Definitions of the ``wanted`` flags as they would be, from those that are stored."""
        flags = [flag for flag in now.flags if flag["name"] not in self.names]
        flags += [flag for flag in self.documents.flags if flag["name"] in wanted]
        return Definitions(flags, now.segments | self.documents.segments)


class Source(NamedTuple):
    """``choices``: a caller's imports, as (id, label). ``read`` raises NotFound, or Conflict if one is not pending."""

    choices: Callable[[Caller], list[tuple[str, str]]]
    read: Callable[[Caller, UUID], PlannedImport]


_sources: list[Source] = []


def register(source: Source) -> None:
    _sources[:] = [source]


def import_choices(caller: Caller) -> list[tuple[str, str]]:
    """The imports that the caller has not applied yet, as (id, label), newest first."""
    return [choice for source in _sources for choice in source.choices(caller)]


def planned_import(caller: Caller, identifier: UUID) -> PlannedImport:
    """Raises NotFound, and Conflict if the import is no longer pending."""
    [source] = _sources
    return source.read(caller, identifier)
