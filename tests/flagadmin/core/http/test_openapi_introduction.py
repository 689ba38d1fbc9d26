"""The OpenAPI document starts with the main operations."""

from flagadmin.console.api_docs.operations import read_document
from flagadmin.core.http.openapi import MAIN_OPERATIONS


def test_the_main_operations_come_first_and_nothing_is_lost():
    document = read_document()
    paths, tags = document["paths"], [tag["name"] for tag in document["tags"]]

    assert list(paths)[: len(MAIN_OPERATIONS)] == [path for path, _ in MAIN_OPERATIONS]
    for path, method in MAIN_OPERATIONS:
        assert next(iter(paths[path])) == method
    assert tags[:4] == ["Playground", "Import and export", "Projects", "Groups"]
    used = {tag for item in paths.values() for operation in item.values() for tag in operation["tags"]}
    assert set(tags) == used
    assert len(tags) == len(used)
