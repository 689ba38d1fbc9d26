"""Rules for flag names and their error messages."""

from types import SimpleNamespace

import pytest

from projects.flags.name_rules import find_name_problem, find_pattern_problem


@pytest.mark.parametrize("name", ["a", "A-b_c.d~9", "x" * 100, "...", "~"])
def test_names_that_are_fine(name):
    assert find_name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "a name is required"),
        ("x" * 101, "must have at most 100 characters, not 101"),
        ("Apple Pay", "Spaces are not allowed. Use apple-pay?"),
        ("a/b", "/ is not allowed. Use a-b?"),
        ("flågg", "å is not allowed. Use fl-gg?"),
        (".", ". cannot be used in a URL. Allowed: letters, digits, - . _ ~"),
        ("..", ".. cannot be used in a URL. Allowed: letters, digits, - . _ ~"),
        ("a\u200bb", "The character U+200B is not allowed. Use a-b?"),
        ("a\u202e", "The character U+202E is not allowed. Use a?"),
        ("e\u0301", "The character U+0301 is not allowed. Use e?"),
        ("a\n", "Spaces are not allowed. Use a?"),
    ],
)
def test_names_that_are_refused(name, problem):
    assert find_name_problem(name) == problem


def rules(pattern, example="", description=""):
    return SimpleNamespace(naming_pattern=pattern, naming_example=example, naming_description=description)


def test_the_pattern_holds_for_the_whole_name():
    assert find_pattern_problem("ok-a", rules("ok-.+")) is None
    assert find_pattern_problem("not-ok-a", rules("ok-.+"))
    assert find_pattern_problem("okay", rules("ok|fine"))


def test_example_and_description_are_told():
    problem = find_pattern_problem("a", rules("ok-.+", "ok-flag", "start with ok"))
    assert problem == "a does not match the project's naming pattern ok-.+. Example: ok-flag. start with ok"


def test_a_catastrophic_pattern_takes_no_time():
    assert find_pattern_problem("a" * 99 + "!", rules("(a+)+b")) is not None
