"""What has not changed in an answer of the upstream is not parsed again, and what is read means the same."""

import json
import random
from typing import Any

import orjson
import pytest

from projects.models import Segment
from relay.reading import Listing, locate_flags, read_changed
from tests.support.cast import client, make_token
from tests.support.flags import make_flag

TEXTS = ("on", "é", '"', '],"query":{', '"features":[', "},{", '{"name":"flag-1"}', "\\", "]}", "\u2028")


def make_document(number: int, chosen: random.Random) -> dict[str, Any]:
    nested = [
        {"query": chosen.choice(TEXTS), "values": [chosen.choice(TEXTS)]} for _ in range(chosen.randrange(3))
    ]
    return {"name": f"flag-{number}", "description": chosen.choice(TEXTS), "strategies": nested}


def write(features: list[dict[str, Any]], revision: int) -> bytes:
    rest = {"query": {"environment": "production"}, "segments": [], "meta": {"revisionId": revision}}
    return orjson.dumps({"version": 2, "features": features, **rest})


def locate(content: bytes) -> Listing:
    listing = locate_flags(content, orjson.loads(content))
    assert listing is not None
    return listing


def change(features: list[dict[str, Any]], chosen: random.Random) -> list[dict[str, Any]]:
    changed = list(features)
    for _ in range(chosen.randrange(4)):
        position = chosen.randrange(len(changed) + 1)
        match chosen.randrange(4):
            case 0:
                changed.insert(position, make_document(chosen.randrange(9), chosen))
            case 1:
                del changed[position : position + chosen.randrange(1, 4)]
            case 2:
                changed[position : position + 1] = [make_document(chosen.randrange(9), chosen)]
            case 3:
                changed.reverse()
    return changed


@pytest.mark.parametrize("seed", range(50))
def test_an_answer_read_in_part_is_the_answer(seed):
    chosen = random.Random(seed)
    features = [make_document(number, chosen) for number in range(chosen.randrange(8))]
    listing = locate(write(features, 1))
    for revision in range(8, 14):
        features = change(features, chosen)
        content = write(features, revision)
        read = read_changed(content, listing)
        assert read is not None
        assert read.document == orjson.loads(content)
        assert list(read.document) == list(orjson.loads(content))
        assert read == locate(content)
        listing = read


def test_flags_whose_text_is_as_before_are_the_same_objects():
    features = [make_document(number, random.Random(0)) for number in range(6)]
    before = locate(write(features, 1))
    after = [*features[:2], {"name": "new"}, *features[3:]]
    read = read_changed(write(after, 2), before)
    assert read is not None
    known, now = before.document["features"], read.document["features"]
    assert [own is other for own, other in zip(known, now, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"version":2,"features":[]}',
        b'{"version":3,"features":[{"name":"a"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"},,{"name":"c"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"} {"name":"c"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"}{"name":"b"},{"name":"c"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"},{"name":"b","x":{"name":"c"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"},{"name":"x" },{"name":"c"}],"query":{}}',
        b'{"version":2,"features":[{"name":"a"},{"name":"c"}],"query":{}',
        b'{"version":2,"features":[{"name":"a"},{"name":"b"},{"name":"c"}],"query":{}}}',
    ],
)
def test_an_answer_of_another_form_is_to_be_parsed_as_a_whole(content):
    before = locate(b'{"version":2,"features":[{"name":"a"},{"name":"b"},{"name":"c"}],"query":{}}')
    assert read_changed(content, before) is None


@pytest.mark.parametrize("features", [[], [{"name": "a"}]])
def test_flags_as_others_write_them_are_not_located(features):
    content = json.dumps({"features": features}).encode()
    assert locate_flags(content, json.loads(content)) is None


def test_what_the_main_server_answers_is_located(shop):
    variant = {"name": "blå", "weight": 1000, "payload": {"type": "json", "value": '{"a": 1.0}'}}
    constraint = {"contextName": "country", "operator": "IN", "values": ["NO", 'a"b'], "inverted": False}
    segment = Segment.objects.create(name="norwegians", constraints=[constraint])
    rollout = {"name": "flexibleRollout", "parameters": {"rollout": "50"}, "constraints": [constraint]}
    for name in ("cart", "menu"):
        make_flag(name, enabled=True, strategies=[rollout | {"segments": [segment]}], variants=[variant])
    secret = make_token("backend", projects=["shop"], environment="development")
    content = client(secret).get("/api/client/features", headers={"Unleash-Client-Spec": "5.2.0"}).content
    read = read_changed(content.replace(b"menu", b"dish"), locate(content))
    assert read is not None
    assert [flag["name"] for flag in read.document["features"]] == ["cart", "dish"]
