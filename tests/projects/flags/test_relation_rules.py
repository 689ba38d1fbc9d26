"""Rules for dependencies, tags and links, and their error messages."""

import pytest

from projects.flags.dependencies.actions import (
    FlagState,
    ProposedDependency,
    dependency_problems,
    make_dependency,
)
from projects.flags.links.rules import link_problems, normalize_url
from projects.rules import Limits
from projects.strategies.known_names import KnownNames
from projects.tag_types.rules import tag_problems

FLAGS = {
    "a": FlagState("shop"),
    "b": FlagState("shop"),
    "c": FlagState("shop"),
    "old": FlagState("shop", archived=True),
    "far": FlagState("other"),
}


def problems(*pairs, existing=()):
    proposed = [
        ProposedDependency(child, parent, f"d[{index}]") for index, (child, parent) in enumerate(pairs)
    ]
    problems_found = dependency_problems(proposed, project="shop", flags=FLAGS, existing=existing)
    return {problem.path: problem.message for problem in problems_found}


def test_several_children_and_several_parents():
    assert problems(("a", "b"), ("a", "c")) == {}
    assert problems(("a", "c"), ("b", "c")) == {}
    assert problems(("a", "c"), existing=[("a", "b")]) == {}


@pytest.mark.parametrize(
    ("pairs", "existing", "expected"),
    [
        ([("a", "a")], [], {"d[0]": "a cannot depend on itself"}),
        ([("a", "nope")], [], {"d[0]": "flag nope not found"}),
        ([("a", "old")], [], {"d[0]": "old is archived; a parent must be active"}),
        ([("a", "far")], [], {"d[0]": "far is in project other; a parent must be in the same project, shop"}),
        ([("a", "b")], [("b", "c")], {"d[0]": "b itself depends on c; a parent cannot have a parent"}),
        ([("a", "b")], [("c", "a")], {"d[0]": "c depends on a; a parent cannot have a parent"}),
        (
            [("a", "b"), ("b", "a")],
            [],
            {
                "d[0]": "b depends on a; flags cannot depend on each other",
                "d[1]": "a depends on b; flags cannot depend on each other",
            },
        ),
        (
            [("a", "b"), ("b", "c")],
            [],
            {
                "d[0]": "b itself depends on c; a parent cannot have a parent",
                "d[1]": "a depends on b; a parent cannot have a parent",
            },
        ),
        ([("a", "b"), ("a", "b")], [], {"d[1]": "a already depends on b"}),
    ],
)
def test_dependencies_that_are_refused(pairs, existing, expected):
    assert problems(*pairs, existing=existing) == expected


def test_a_parent_that_must_be_off_has_no_variants():
    dependency = {"feature": "b", "enabled": False, "variants": ["x"]}
    assert make_dependency(dependency) == {"feature": "b", "enabled": False, "variants": []}
    assert make_dependency({"feature": "b"}) == {"feature": "b", "enabled": True, "variants": []}


@pytest.mark.parametrize("value", ["ab", "x" * 50, "  two words æ "])
def test_tags_that_are_fine(value):
    known_names = KnownNames(tag_types=frozenset({"simple"}))
    assert list(tag_problems("simple", value, "t", known_names=known_names)) == []


@pytest.mark.parametrize(
    ("tag_type", "value", "path"),
    [("simple", "a", "t.value"), ("simple", "x" * 51, "t.value"), ("area", "ab", "t.type")],
)
def test_tags_that_are_refused(tag_type, value, path):
    known_names = KnownNames(tag_types=frozenset({"simple"}))
    [problem] = tag_problems(tag_type, value, "t", known_names=known_names)
    assert problem.path == path


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("https://example1.com/a?b=c#d", "https://example1.com/a?b=c#d"),
        ("example2.com", "https://example2.com"),
        ("http://www.example3.com/", "http://example3.com"),
        ("localhost:8080/x/", "https://localhost:8080/x"),
        ("HTTPS://Example.COM:443/A", "https://example.com/A"),
        ("http://[::1]:80/", "http://[::1]"),
    ],
)
def test_addresses_are_brought_into_one_form(given, stored):
    assert normalize_url(given) == stored


@pytest.mark.parametrize(
    "given",
    [
        "http://",
        "",
        "javascript:alert(1)",
        "JavaScript://x/%0aalert(1)",
        "data:text/html,x",
        "ftp://a.b",
        "https://a b",
        "https://user:secret@a.b",
        "https://a.b:99999",
        "https://[",
    ],
)
def test_addresses_that_are_none(given):
    assert normalize_url(given) is None
    [problem] = link_problems([{"url": given}], "links", limits=Limits())
    assert problem.path == "links[0].url"


def test_at_most_ten_links():
    [problem] = link_problems([{"url": "a.b"}] * 11, "links", limits=Limits())
    assert (problem.path, problem.message) == ("links", "must have at most 10 links, not 11")
