"""Contexts of strings are those that any other document with the same strings makes."""

import pytest

from playground.engine.context import Context

NOW = "2026-11-21T09:00:00.000Z"


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"userId": "7", "properties": {"country": "NO", "userId": "8"}},
        {"properties": {"appName": "shop", "environment": "test"}},
        {"appName": "shop", "environment": ""},
        {"properties": {"currentTime": "", "properties": "x"}},
        {"currentTime": "2020-01-01T00:00:00Z"},
        {"plan": "pro", "properties": {"plan": "free", "ærlig": "ø"}},
    ],
)
def test_the_same_context(document):
    general, fast = Context(document).at(1_763_715_600_000), Context.of_strings(document, now=NOW)
    expected = general.values | (
        {"currentTime": NOW} if "currentTime" not in Context(document).values else {}
    )
    assert (fast.fields, fast.values) == (general.fields, expected)
