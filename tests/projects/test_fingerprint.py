"""The fingerprint of what decides an answer: every member of the SDK's documents that does changes it."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from projects.definitions import Definitions
from projects.fingerprint import explain_difference, take_fingerprint

SAYS_ONLY = {"name", "project", "stale", "archived", "title", "id", "sortOrder"}
"""Members that describe or identify. The names of variants and of strategies' types decide."""


def constraint(*values: str) -> dict[str, Any]:
    return {
        "contextName": "country",
        "operator": "IN",
        "values": list(values),
        "value": "",
        "inverted": False,
        "caseInsensitive": False,
    }


def variant(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "weight": 500,
        "weightType": "variable",
        "stickiness": "default",
        "payload": {"type": "string", "value": name},
        "overrides": [{"contextName": "userId", "values": ["1"]}],
    }


def flag(name: str, *parents: str, enabled: bool = True) -> dict[str, Any]:
    return {
        "name": name,
        "project": "shop",
        "enabled": enabled,
        "impression_data": False,
        "stale": False,
        "archived": False,
        "variants": [variant("a"), variant("b")],
        "dependencies": [{"feature": parent, "enabled": True, "variants": ["a"]} for parent in parents],
        "strategies": [
            {
                "id": f"of-{name}",
                "name": "flexibleRollout",
                "title": "",
                "disabled": False,
                "sortOrder": 0,
                "parameters": {"rollout": "50", "stickiness": "default", "groupId": name},
                "constraints": [constraint("NO")],
                "segments": [1],
                "variants": [variant("c")],
            }
        ],
    }


def state(*flags: Any) -> Definitions:
    nordic: Any = {"id": 1, "name": "nordic", "constraints": [constraint("DK")]}
    return Definitions(list(flags), {1: nordic})


def documents() -> Any:
    """A touched flag, its parent, and a child with another parent; all on."""
    return state(flag("cart", "base"), flag("base"), flag("child", "cart", "other"), flag("other"))


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all members that are no object, and of all lists."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from paths(member, (*path, key))
        return
    if value != []:
        yield path
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from paths(member, (*path, index))


def edited(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, list):
        return value[:-1]
    return f"{value}x" if isinstance(value, str) else value + 1


def edit(document: Any, path: Sequence[Any]) -> None:
    *way, last = path
    for key in way:
        document = document[key]
    document[last] = edited(document[last])


def list_places(read: Definitions) -> Iterator[tuple[Any, ...]]:
    """The members that can be edited. A flag or a segment of another name would be another one."""
    for part in ("flags", "segments"):
        documents = getattr(read, part)
        for key in documents if part == "segments" else range(len(documents)):
            for path in paths(documents[key], (part, key)):
                if path[2:] != ("name",):
                    yield path


def test_each_member_of_the_documents_changes_it_but_those_that_only_describe() -> None:
    before, wrong = take_fingerprint(documents(), {"cart"}), []
    for part, *path in list_places(documents()):
        changed = documents()
        edit(getattr(changed, part), path)
        decides = path[-1] not in SAYS_ONLY or "variants" in path or path[1:] == ["strategies", 0, "name"]
        if (take_fingerprint(changed, {"cart"}) != before) != decides:
            wrong.append((part, *path))
    assert wrong == []


def test_what_is_added_changes_it() -> None:
    before = take_fingerprint(documents(), {"cart"})
    added: dict[str, Any] = {
        "strategies": flag("x")["strategies"][0],
        "variants": variant("z"),
        "dependencies": {"feature": "other", "enabled": True, "variants": []},
    }
    for member, value in added.items():
        changed = documents()
        changed.flags[0][member] = [*changed.flags[0][member], value]
        assert take_fingerprint(changed, {"cart"}) != before, member


def test_strategies_that_are_disabled_count_only_as_all_there_is() -> None:
    read = documents()
    disabled = {**deepcopy(read.flags[0]["strategies"][0]), "disabled": True}
    before = take_fingerprint(read, {"cart"})
    read.flags[0]["strategies"].append(disabled)
    assert take_fingerprint(read, {"cart"}) == before
    read.flags[0]["strategies"] = [disabled]
    all_disabled = take_fingerprint(read, {"cart"})
    read.flags[0]["strategies"] = []
    assert all_disabled != take_fingerprint(read, {"cart"}) != before


def test_their_order_counts() -> None:
    read = documents()
    read.flags[0]["strategies"] += flag("x")["strategies"]
    before = take_fingerprint(read, {"cart"})
    read.flags[0]["strategies"].reverse()
    assert take_fingerprint(read, {"cart"}) != before


def test_what_is_off_has_none_with_all_that_needs_it() -> None:
    read = state(flag("cart", enabled=False), flag("child", "cart"), flag("grandchild", "child"))
    assert take_fingerprint(read, {"cart"}) == {}
    assert take_fingerprint(read, {"archived long ago"}) == {}


def test_a_child_that_needs_its_parent_off_counts() -> None:
    child = flag("child", "cart")
    child["dependencies"][0] |= {"enabled": False, "variants": []}
    read = state(flag("cart", enabled=False), child)
    before = take_fingerprint(read, {"cart"})
    child["variants"] = []
    assert take_fingerprint(read, {"cart"}) != before


def test_nothing_of_others_counts() -> None:
    read = documents()
    before = take_fingerprint(read, {"cart"})
    read.flags.append(flag("else", "other"))
    read.segments[2] = {"id": 2, "name": "unused", "constraints": []}
    assert take_fingerprint(read, {"cart"}) == before
    assert take_fingerprint(read, {"cart"}, [2]) != before


def test_a_cycle_ends() -> None:
    assert take_fingerprint(state(flag("a", "b"), flag("b", "a")), {"a"})


def test_what_differs_is_said() -> None:
    before, now = documents(), documents()
    now.flags[0]["variants"] = []
    now.flags[1]["enabled"] = False
    now.segments[1]["constraints"] = []
    fingerprints = [take_fingerprint(read, {"cart"}) for read in (before, now)]
    assert "cart would be off now." in explain_difference(*fingerprints)
    now.flags[1]["enabled"] = True
    fingerprints[1] = take_fingerprint(now, {"cart"})
    before_it, after_it = fingerprints
    assert explain_difference(before_it, after_it, {1: "nordic"}) == [
        "The constraints of segment nordic have changed.",
        "The variants of cart have changed.",
    ]
