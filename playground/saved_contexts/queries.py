"""Reads saved contexts, and makes their documents for API responses and audit events."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from flagadmin.core.document import Document
from flagadmin.core.errors import Problem, check_problems
from flagadmin.core.http.responses import iso
from groups.access import Caller
from playground.models import SavedContext
from playground.saved_contexts.enforcement import read_flag_projects


def get_named_contexts(caller: Caller, names: Iterable[str], path: str) -> list[SavedContext]:
    """The saved contexts with these names, in this order. Raises ValidationError for unknown names."""
    unique_names = list(dict.fromkeys(names))
    contexts_by_name = {
        saved.name: saved for saved in SavedContext.objects.readable_by(caller).filter(name__in=unique_names)
    }
    check_problems(
        [
            Problem(f"{path}[{index}]", f"saved context {name} not found")
            for index, name in enumerate(unique_names)
            if name not in contexts_by_name
        ]
    )
    return [contexts_by_name[name] for name in unique_names]


def select_visible_expectations(
    caller: Caller, contexts: Collection[SavedContext]
) -> dict[int, list[Document]]:
    """The expectations of each saved context, without those of flags in projects that the caller may not read."""
    if caller.reads_all_projects:
        return {saved.pk: list(saved.expectations) for saved in contexts}
    projects = read_flag_projects(expected for saved in contexts for expected in saved.expectations)

    def is_visible(saved: SavedContext, flag: str) -> bool:
        # If the context belongs to a project, a deleted flag was one of the project's.
        return caller.can_read(projects[flag]) if flag in projects else saved.project_id is not None

    return {
        saved.pk: [
            expectation for expectation in saved.expectations if is_visible(saved, expectation["flag"])
        ]
        for saved in contexts
    }


def build_visible_documents(caller: Caller, saved_contexts: Iterable[SavedContext]) -> Iterator[Document]:
    """The documents without expectations of flags that the caller may not see."""
    contexts = list(saved_contexts)
    expectations = select_visible_expectations(caller, contexts)
    for saved in contexts:
        records = make_expectation_records(saved, expectations[saved.pk])
        yield make_saved_context_document(saved) | {"expectations": records}


def build_visible_document(caller: Caller, saved: SavedContext) -> Document:
    [document] = build_visible_documents(caller, [saved])
    return document


def make_saved_context_document(saved: SavedContext) -> Document:
    return {
        "id": saved.pk,
        "name": saved.name,
        "project": saved.project_id,
        "context": saved.context,
        "note": saved.note,
        "expectations": make_expectation_records(saved, saved.expectations),
        "createdBy": saved.created_by,
        "createdAt": iso(saved.created_at),
        "updatedBy": saved.updated_by,
        "updatedAt": iso(saved.updated_at),
    }


def make_expectation_records(
    saved: SavedContext, expectations: Iterable[Mapping[str, Any]]
) -> list[Document]:
    """Expectations of a saved context, each with the project that enforces it, or null."""
    return [
        {**expectation, "enforcedIn": saved.enforcing_project(expectation["flag"])}
        for expectation in expectations
    ]
