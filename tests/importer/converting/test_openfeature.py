"""Flag manifests of OpenFeature."""

import pytest

from flagadmin.core.errors import ValidationError
from tests.importer.converting.comparing import convert, evaluate_here, exactness_of, notes_of

MANIFEST = {
    "$schema": "https://raw.githubusercontent.com/open-feature/cli/refs/heads/main/schema/v0/flag-manifest.json",
    "flags": {
        "on": {"flagType": "boolean", "defaultValue": True, "description": "The new search."},
        "off": {"flagType": "boolean", "defaultValue": False},
        "text": {"flagType": "string", "defaultValue": "hello"},
        "number": {"flagType": "integer", "defaultValue": 5},
        "object": {"flagType": "object", "defaultValue": {"a": [1]}},
    },
}


def test_static_flags_give_their_default_values():
    conversion = convert(MANIFEST)
    assert set(exactness_of(conversion).values()) == {"exact"}
    [results] = evaluate_here(conversion, [{"userId": "1"}])
    assert results == {"on": True, "off": "off", "text": "hello", "number": 5, "object": {"a": [1]}}
    assert conversion.flags[0].source.description == "The new search."


def test_a_flag_without_a_value_is_not_converted():
    conversion = convert({"flags": {"a": {"flagType": "string", "defaultValue": None}}})
    assert notes_of(conversion, "a") == ["It has no default value."]


def test_errors_name_the_place():
    with pytest.raises(ValidationError) as caught:
        convert({"flags": {"a": {"flagType": "boolean"}}})
    assert [problem.path for problem in caught.value.details] == ["flags.a.defaultValue"]
