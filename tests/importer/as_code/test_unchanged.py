"""Flags that are stored as they are written are not planned; everything else is."""

import pytest

from importer.as_code import actions
from importer.as_code.actions import plan_directory
from importer.as_code.documents import read_directory
from importer.as_code.schemas import Directory
from tests.support.flags import add_strategy, make_flag, switch_on

pytestmark = pytest.mark.django_db


@pytest.fixture
def directory(shop, callers):
    for name in ("cart", "search"):
        flag = make_flag(name, project=shop)
        add_strategy(flag, "production", "flexibleRollout", parameters={"rollout": "50"})
        switch_on(flag, "production")
    flags = read_directory(["shop"], caller=callers("admin"))["flags"]
    return Directory(flags, [], [], {})


@pytest.fixture
def imported(monkeypatch):
    """The flags that imports are asked for."""
    names: list[str] = []
    work = actions.import_part

    def note(body, **more):
        names.extend(flag["name"] for flag in body.data["features"])
        return work(body, **more)

    monkeypatch.setattr(actions, "import_part", note)
    return names


def test_what_is_stored_is_left_alone(directory, callers, imported):
    planned = plan_directory(directory, caller=callers("admin"))
    assert (planned.lines, planned.states, imported) == ([], {}, [])
    assert planned.fingerprint


def test_only_what_differs_is_planned(directory, callers, imported):
    directory.flags[1]["flag"]["environments"]["production"]["enabled"] = False
    planned = plan_directory(directory, caller=callers("admin"))
    assert [line["name"] for line in planned.lines] == ["search"]
    assert set(imported) == {"search"}
    assert list(planned.states) == [("shop", "production")]


def test_what_is_listed_twice_is_refused_though_stored(directory, callers):
    directory.flags.append(directory.flags[0])
    with pytest.raises(actions.ValidationError) as refused:
        plan_directory(directory, caller=callers("admin"))
    assert "listed more than once" in str(refused.value.details)
