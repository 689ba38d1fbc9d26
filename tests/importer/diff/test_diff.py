"""``flagadmin diff``: flags of two files, or of a plan of Terraform, without a server and a database."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.importer.diff.planted import (
    GERMANS,
    NAME,
    PLANS,
    SIDES,
    Side,
    as_code,
    export,
    flagd,
    make_strategy,
    targeted,
    write,
    write_plan,
)

# No mark for the database: a query would fail.


def diff(*arguments: Any) -> tuple[int, str]:
    """The exit status, and the message of an error."""
    try:
        call_command("diff", *map(str, arguments))
    except CommandError as error:
        return error.returncode, str(error)
    return 0, ""


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.__name__)
def test_a_hundred_typed_for_five_is_found(tmp_path: Path, side: Side, capsys: Any) -> None:
    before = side(tmp_path / "before", 5)
    assert diff(before, side(tmp_path / "more", 10), "--at-most", 20) == (0, "")
    status, message = diff(before, side(tmp_path / "after", 100), "--at-most", 20)
    assert status == 1
    assert NAME in message
    assert f"~ flag {NAME}" in capsys.readouterr().out


@pytest.mark.parametrize("side", PLANS, ids=lambda side: side.__name__)
def test_it_is_found_in_a_plan_of_terraform(tmp_path: Path, side: Callable[[int], Any]) -> None:
    assert diff(write_plan(tmp_path / "more.json", side(5), side(10)), "--at-most", 20) == (0, "")
    status, message = diff(write_plan(tmp_path / "plan.json", side(5), side(100)), "--at-most", 20)
    assert status == 1
    assert f"{NAME} in production changes for" in message


def test_a_new_and_a_removed_resource(tmp_path: Path) -> None:
    new = targeted(100)
    nothing = [(type_, None) for type_, _ in new]
    assert diff(write_plan(tmp_path / "new.json", nothing, new), "--at-most", 20)[0] == 1
    assert diff(write_plan(tmp_path / "gone.json", new, nothing), "--at-most", 20)[0] == 1


def test_named_users_do_not_count_as_everybody(tmp_path: Path) -> None:
    testers = {"contextName": "userId", "operator": "IN", "values": ["ada", "bob"]}
    more = testers | {"values": [f"tester-{number}" for number in range(100)]}
    before, after = as_code(tmp_path / "before", 100, testers), as_code(tmp_path / "after", 100, more)
    assert diff(before, after, "--at-most", 20) == (0, "")


def test_a_condition_that_generated_users_cannot_meet_is_above_any_limit(tmp_path: Path) -> None:
    ours = {"contextName": "userId", "operator": "REGEX", "value": "^staff-[0-9]{12}$", "values": []}
    before, after = as_code(tmp_path / "before", 5, ours), as_code(tmp_path / "after", 100, ours)
    status, message = diff(before, after, "--at-most", 20)
    assert (status, "cannot be measured" in message) == (1, True)


def test_a_flag_that_is_turned_off_is_found_beside_a_condition_that_few_meet(tmp_path: Path) -> None:
    ours = {"contextName": "userId", "operator": "REGEX", "value": "^staff-[0-9]{12}$", "values": []}
    before = as_code(tmp_path / "before", 60)
    file = before / "flags" / "checkout" / f"{NAME}.json"
    document = json.loads(file.read_text())
    document["environments"]["production"]["strategies"].append(make_strategy(100, ours))
    write(file, document)
    document["environments"]["production"]["enabled"] = False
    after = as_code(tmp_path / "after", 60)
    write(after / "flags" / "checkout" / f"{NAME}.json", document)
    assert diff(before, after, "--at-most", 5)[0] == 1


def test_a_targeting_whose_flag_is_in_no_resource_is_named(tmp_path: Path, capsys: Any) -> None:
    before, after = targeted(5)[1:], targeted(100)[1:]
    assert diff(write_plan(tmp_path / "plan.json", before, after)) == (0, "")
    assert f"shop/{NAME} cannot be compared: the plan does not have" in capsys.readouterr().out


def test_own_users_instead_of_generated_ones(tmp_path: Path, capsys: Any) -> None:
    before, after = as_code(tmp_path / "before", 0, GERMANS), as_code(tmp_path / "after", 100, GERMANS)
    users = write(tmp_path / "users.csv", "userId,country\nada,DE\nbob,NO\neve,NO\nkim,NO\n")
    assert diff(before, after, "--users", users, "--at-most", 20)[0] == 1
    assert diff(before, after, "--users", users) == (0, "")
    assert "production: 1 of 4 users of users.csv change: 1 off → on" in capsys.readouterr().out


def test_the_comment_for_a_pull_request(tmp_path: Path) -> None:
    before = as_code(tmp_path / "before", 5, description="a `b` | c")
    after = as_code(tmp_path / "after", 100, description="a `b` | d")
    comment, answer = tmp_path / "comment.md", tmp_path / "answer.json"
    diff(before, after, "--at-most", 20, "--markdown", comment, "--json", answer)
    text = comment.read_text()
    assert f"| change | flag `{NAME}` |" in text
    assert "environments.production.strategies[0].parameters.rollout: 5 → 100" in text
    assert "a 'b' \\| c" in text
    document = json.loads(answer.read_text())
    [comparison], [above] = document["whoChanges"], document["aboveLimit"]
    assert comparison["counts"] == {"offToOn": comparison["changed"]}
    assert above["share"] == comparison["changed"] / comparison["users"] > 0.9


def test_nothing_differs(tmp_path: Path, capsys: Any) -> None:
    assert diff(flagd(tmp_path / "a", 5), flagd(tmp_path / "b", 5), "--at-most", 0) == (0, "")
    assert capsys.readouterr().out == "The flags are the same.\n"


def test_different_products_can_be_compared(tmp_path: Path) -> None:
    assert diff(flagd(tmp_path, 100), as_code(tmp_path / "after", 100, GERMANS), "--at-most", 1) == (0, "")


def test_a_segment_without_conditions_is_named(tmp_path: Path, capsys: Any) -> None:
    diff(export(tmp_path / "a", 5), export(tmp_path / "b", 100))
    assert "Segment nordics has no conditions in the files" in capsys.readouterr().out


def test_only_the_named_environment(tmp_path: Path, capsys: Any) -> None:
    sides = [as_code(tmp_path / str(percent), percent) for percent in (5, 100)]
    assert diff(*sides, "--environment", "production", "--at-most", 20)[0] == 1
    status, message = diff(*sides, "--environment", "test")
    assert (status, message) == (
        2,
        "environment: test is not an environment of the files. Available: production",
    )


def test_an_environment_that_a_file_leaves_out_stays_as_it_is(tmp_path: Path, capsys: Any) -> None:
    before = as_code(tmp_path / "before", 5)
    after = as_code(tmp_path / "after", 5, environments={})
    assert diff(before, after, "--at-most", 0) == (0, "")


def test_a_flag_without_equivalent_is_named_and_not_compared(tmp_path: Path, capsys: Any) -> None:
    odd = {"state": "ENABLED", "variants": {"on": True, "off": False}, "defaultVariant": "off"}
    odd["targeting"] = {"if": [{"unknown_operator": [1]}, "on", "off"]}
    file = write(tmp_path / "odd.json", {"flags": {NAME: odd}})
    assert diff(file, flagd(tmp_path, 100), "--at-most", 0) == (0, "")
    assert f"{NAME} cannot be compared" in capsys.readouterr().out


BAD = {
    "no flags": ({"a": 1}, "This is not a file of a product"),
    "broken": ("{", "is not valid JSON"),
    "a wrong type": (
        {"features": [{"name": []}], "featureStrategies": [], "tagTypes": []},
        "features[0].name",
    ),
    "a plan of something else": ({"resource_changes": []}, "has no flag of the providers"),
    "a plan without name": (
        {"resource_changes": [{"type": "unleash_feature_v2", "change": {"after": {}}}]},
        "lacks an attribute",
    ),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_files_are_refused_with_their_name(tmp_path: Path, bad: str, capsys: Any) -> None:
    content, message = BAD[bad]
    file = write(tmp_path / "bad.json", content)
    arguments = [file] if "plan" in bad else [file, flagd(tmp_path, 5)]
    status, said = diff(*arguments)
    assert status == 2
    assert message in said + capsys.readouterr().err
    assert "plan" in bad or "bad.json" in said


def test_other_refusals(tmp_path: Path) -> None:
    refused = partial(diff, flagd(tmp_path, 5))
    assert refused()[0] == 2
    assert "no plan of Terraform" in refused()[1]
    assert refused(tmp_path / "nowhere.json") == (
        2,
        f"Cannot read {tmp_path / 'nowhere.json'}: No such file or directory",
    )
    twice = as_code(tmp_path / "twice", 5)
    write(twice / "flags" / "checkout" / "again.json", {"name": NAME, "environments": {}})
    assert "too" in refused(twice)[1]
