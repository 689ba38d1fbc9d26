"""The advanced playground evaluates all combinations of context values."""

import pytest

from flagadmin.core.errors import ValidationError
from playground.request import (
    check_size,
    combine_contexts,
    count_contexts,
    list_invalid_properties,
    split_context,
)


def test_properties_join_the_top_level_and_the_later_key_wins():
    assert split_context(
        {"userId": "u1", "properties": {"userId": "p", "country": "no"}, "appName": "a"}
    ) == {
        "userId": ["p"],
        "country": ["no"],
        "appName": ["a"],
    }
    assert list(split_context({"appName": "a", "userId": "u"})) == ["userId", "appName"]


def test_splitting_trims_nothing():
    assert split_context({"userId": "u1, u2,,"}) == {"userId": ["u1", " u2", "", ""]}


def test_the_first_field_varies_slowest():
    fields = split_context({"a": "1,2", "b": "x,y"})
    assert count_contexts(fields) == 4
    assert list(combine_contexts(fields)) == [
        {"a": "1", "b": "x"},
        {"a": "1", "b": "y"},
        {"a": "2", "b": "x"},
        {"a": "2", "b": "y"},
    ]


def test_no_fields_are_one_context():
    assert list(combine_contexts({})) == [{}]


def test_what_is_no_text_is_named():
    assert list_invalid_properties({"bad": 5, "worse": None, "good": "x", "properties": {"n": 5}}) == [
        "bad",
        "worse",
    ]


def test_the_limit_itself_passes():
    check_size(environments=2, flags=5, contexts=10, limit=100)
    with pytest.raises(ValidationError, match=r"110 evaluations; the limit is 100.*environments \(2\)"):
        check_size(environments=2, flags=5, contexts=11, limit=100)
