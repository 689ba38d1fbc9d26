"""Parsing a playground request: type conversion, defaults, and errors with their paths."""

from typing import Any

import pytest

from flagadmin.core.errors import ValidationError
from playground.request import read_request


def read(**members):
    return read_request({"environment": "development", "context": {}} | members)


def faults(body, **options):
    with pytest.raises(ValidationError) as refusal:
        read_request(body, **options)
    return {problem.path: problem.message for problem in refusal.value.details}


def test_the_least_body():
    found = read()
    assert found.environments == ["development"]
    assert found.projects is None
    assert found.context == {}
    assert found.echo == {"environment": "development", "context": {}}


@pytest.mark.parametrize("everything", [None, "*", ["*"], ["shop", "*"]])
def test_every_project(everything):
    assert read(projects=everything).projects is None


def test_no_projects_and_some():
    assert read(projects=[]).projects == []
    assert read(projects=["b", "a", "b"]).projects == ["b", "a"]


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (5, "5"),
        (1.0, "1"),
        (-0.5, "-0.5"),
        (1e21, "1e+21"),
        (12345678901234567890, "12345678901234567000"),
        (True, "true"),
        (False, "false"),
        ("", ""),
        ("x", "x"),
    ],
)
def test_scalars_become_text_everywhere(sent, text):
    found = read(context={"userId": sent, "custom": sent, "properties": {"p": sent}})
    assert found.context == {"userId": text, "custom": text, "properties": {"p": text}}
    assert found.echo["context"] == found.context


def test_null_is_absent():
    assert read(context={"userId": None, "custom": None, "properties": None}).context == {}
    assert read(context={"properties": {"p": None, "q": "1"}}).context == {"properties": {"q": "1"}}


def test_the_echo_keeps_what_else_was_sent():
    assert read(extra={"deep": [1]}, projects="*").echo == {
        "environment": "development",
        "context": {},
        "extra": {"deep": [1]},
        "projects": "*",
    }


def test_all_faults_at_once():
    assert faults(
        {
            "projects": "default",
            "context": {"userId": {}, "nested": [1], "properties": {"deep": {}}, "currentTime": "junk"},
        }
    ) == {
        "environment": "is required",
        "projects": 'must be a list of project ids, or "*" for all you can read, not "default"',
        "context.userId": "must be a string, not an object",
        "context.nested": "must be a string, not a list; put nested values into properties as strings",
        "context.properties.deep": "must be a string, not an object",
        "context.currentTime": (
            'must be a date and time with its offset, for example 2026-11-21T09:00:00Z, not "junk"'
        ),
    }


@pytest.mark.parametrize("body", [[], "x", 5, None])
def test_a_body_that_is_no_object(body):
    with pytest.raises(ValidationError, match="must be an object"):
        read_request(body)


@pytest.mark.parametrize("context", ["x", [], 5, None])
def test_a_context_that_is_no_object(context):
    assert list(faults({"environment": "development", "context": context})) == ["context"]


def test_a_body_without_a_context():
    assert faults({"environment": "development"}) == {"context": "is required; it may be empty: {}"}


@pytest.mark.parametrize("environment", ["", {}, ["development"]])
def test_an_environment_that_is_no_name(environment):
    assert list(faults({"environment": environment, "context": {}})) == ["environment"]


@pytest.mark.parametrize(
    "time", ["2022-07-05T12:56:41+02:00", "2022-07-05T12:56:41.123Z", "2022-07-05 12:56:41Z"]
)
def test_times(time):
    assert read(context={"currentTime": time}).context == {"currentTime": time}


@pytest.mark.parametrize(
    "time", ["2022-07-05", "2022-02-30T00:00:00Z", "2022-07-05T24:00:00Z", 1643461200000, ""]
)
def test_what_is_no_time(time):
    assert list(faults({"environment": "e", "context": {"currentTime": time}})) == ["context.currentTime"]


def test_several_environments():
    found = read_request({"environments": ["a", 5], "context": {}}, several=True)
    assert found.environments == ["a", "5"]
    assert list(faults({"environments": [], "context": {}}, several=True)) == ["environments"]
    assert list(faults({"environments": "a", "context": {}}, several=True)) == ["environments"]
    assert list(faults({"environments": ["a", ""], "context": {}}, several=True)) == ["environments[1]"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"environment": "e", "context": {}, "projects": [{}] * 10_001}, "projects"),
        ({"environment": "e", "context": {}, "projects": ["p" * 100_001]}, "projects[0]"),
        ({"environment": "e" * 100_001, "context": {}}, "environment"),
        ({"environment": "e", "context": {"userId": "u" * 100_001}}, "context.userId"),
        ({"environment": "e", "context": dict.fromkeys(map(str, range(1_001)), "")}, "context"),
        (
            {"environment": "e", "context": {"properties": dict.fromkeys(map(str, range(1_001)), "")}},
            "context.properties",
        ),
        ({"environment": "e", "context": {"properties": {"a": "x" * 100_001}}}, "context.properties.a"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_and_texts_have_a_maximum(body: Any, path: str) -> None:
    assert list(faults(body)) == [path]


def test_lists_of_environments_have_a_maximum() -> None:
    assert list(faults({"environments": ["e"] * 101, "context": {}}, several=True)) == ["environments"]
