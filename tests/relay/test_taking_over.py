"""A relay takes over what has not changed in the flags before, and answers as if it had read all of them anew."""

import random
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep
from typing import Any

import orjson
import pytest

from flagadmin.core.document import Document
from playground.engine.context import Context
from playground.response.frontend import render_toggles
from relay.flags import Flags, read_flags
from tests.support.engine import NOW
from tests.support.live_server import PATIENCE
from tests.support.relay import flag

SCOPE = "development", ("*",)
COUNTRIES = ("NO", "SE", "DK")


def read(features: list[Document], segments: list[Document], before: Flags | None = None) -> Flags:
    return read_flags(SCOPE, orjson.dumps({"features": features, "segments": segments}), "", before=before)


def make_segment(number: int, chosen: random.Random) -> Document:
    constraint = {"contextName": "country", "operator": "IN", "values": [chosen.choice(COUNTRIES)]}
    return {"id": number, "constraints": [constraint]}


def make_flag(number: int, segments: list[Document], chosen: random.Random) -> Document:
    used = [segment["id"] for segment in segments if chosen.random() < 0.3]
    if chosen.random() < 0.1:
        used.append(99)  # which there is not
    parameters = {"rollout": str(chosen.randrange(101)), "stickiness": "userId", "groupId": "g"}
    own = flag(
        f"flag-{number}",
        chosen.choice(("shop", "other")),
        name="flexibleRollout",
        parameters=parameters,
        segments=used,
    )
    own["impressionData"] = chosen.random() < 0.5
    if number and chosen.random() < 0.2:
        own["dependencies"] = [{"feature": f"flag-{number - 1}"}]
    return own


def answer(flags: Flags) -> list[bytes]:
    """What frontends with some contexts get."""
    toggles = flags.prepare().toggles
    contexts = [{"userId": str(user), "country": country} for user in range(5) for country in COUNTRIES]
    return [
        render_toggles(toggles.find(Context(fields).at(NOW), random.Random(0).random).active)
        for fields in contexts
    ]


@pytest.mark.parametrize("seed", range(20))
def test_answers_after_changes_are_those_of_the_flags_read_anew(seed: int) -> None:
    chosen = random.Random(seed)
    segments = [make_segment(number, chosen) for number in range(4)]
    features = [make_flag(number, segments, chosen) for number in range(12)]
    before = read(features, segments)
    before.prepare()
    for _ in range(10):
        features = [
            make_flag(int(own["name"][5:]), segments, chosen) if chosen.random() < 0.2 else own
            for own in features
            if chosen.random() < 0.95
        ]
        segments = [
            make_segment(own["id"], chosen) if chosen.random() < 0.2 else own
            for own in segments
            if chosen.random() < 0.95
        ]
        if chosen.random() < 0.3:
            segments.append(make_segment(max((own["id"] for own in segments), default=-1) + 1, chosen))
        now = read(features, segments, before)
        now.prepare(before)
        assert answer(now) == answer(read(features, segments))
        before = now


def test_flags_that_have_not_changed_are_not_compiled_again() -> None:
    features = [flag("same"), flag("changed"), flag("gone")]
    before = read(features, [])
    before.prepare()
    now = read([flag("same"), flag("changed", segments=[1]), flag("new")], [], before)
    first, then = before.prepare().snapshot, now.prepare(before).snapshot
    assert then.names == ["changed", "new", "same"]
    assert [own in first.flags for own in then.flags] == [False, False, True]


def test_a_revision_that_comes_again_with_other_flags_is_another_state() -> None:
    """As after a backup was restored: frontends that know the first must not be told that nothing has changed."""

    def read_revision(revision: int, name: str, before: Flags | None) -> Flags:
        etag = f'"cafe:{revision}:v1"'
        document = {"features": [flag(name)], "meta": {"revisionId": revision, "etag": etag}}
        flags = read_flags(SCOPE, orjson.dumps(document), etag, before=before)
        flags.prepare(before)
        return flags

    first = read_revision(105, "before", None)
    restored = read_revision(100, "restored", first)
    again = read_revision(105, "after", restored)
    states = [flags.prepare().state for flags in (first, restored, again)]
    assert len(set(states)) == 3
    assert read_revision(105, "before", None).prepare().state == states[0]  # as other relays have it


@pytest.mark.parametrize("member", ["segments", "constraints"])
@pytest.mark.parametrize("value", [5, True, "x", {"a": 1}, [{}], [[1]], None])
def test_members_that_make_no_sense_keep_nothing_from_being_followed(member: str, value: Any) -> None:
    strange, segment = flag("strange", **{"segments": [1], member: value}), {"id": 1, "constraints": value}
    before = read([flag("known", segments=[1]), strange], [{"id": 1, "constraints": []}])
    before.prepare()
    now = read([flag("known", segments=[1]), strange, flag("new")], [segment], before)
    assert now.prepare(before).snapshot.names == ["known", "new", "strange"]
    for flags in (now, now.narrowed(("shop",))):
        inlined = orjson.loads(flags.body(knows_segments=False).body)
        assert [own["name"] for own in inlined["features"]] == ["known", "strange", "new"]


def test_those_who_ask_first_at_the_same_time_wait_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As browsers do when a relay has started."""
    flags, compiled, all_ask = read([flag("a")], []), list[Flags](), Barrier(4)
    compile_once = Flags._compile

    def compile_slowly(own: Flags, before: Flags | None) -> Any:
        compiled.append(own)
        sleep(0.05)
        return compile_once(own, before)

    def ask(_: int) -> Any:
        all_ask.wait(PATIENCE)
        return flags.prepare()

    monkeypatch.setattr(Flags, "_compile", compile_slowly)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len(compiled) == len(set(map(id, found))) == 1
