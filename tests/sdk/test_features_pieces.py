"""Answers spliced from pieces are, after every change, the bytes of one serialized as a whole."""

import gzip
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from django.utils import timezone

from groups.access import Caller
from groups.models import ApiToken
from projects import definitions
from projects.flags.actions import update_flag
from projects.models import Flag, FlagEnvironment, Segment, Strategy
from sdk.delta.history import History
from sdk.delta.states import Events, Scope, read_content
from sdk.features import assembly, chunks
from sdk.features import chunks as features_body
from sdk.features.api import FeaturesCache, FeaturesQuery, cache, get_answer
from sdk.features.assembly import FeaturesAnswer, Piece, Place
from tests.support.cast import make_project, make_token
from tests.support.examples import first_every_day
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.plain_features import plain_features
from tests.support.random_changes import RandomChanges

pytestmark = pytest.mark.django_db
PROJECTS = ("default", "one", "two")
ALL = FeaturesQuery(knows_segments=True)
OLD = FeaturesQuery(knows_segments=False)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(chunks, "SIZE", 1_000)
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def tokens(db: None) -> list[ApiToken]:
    """Of all projects and of one; the names of the projects' flags interleave."""
    for project in PROJECTS[1:]:
        make_project(project)
    segment = Segment.objects.create(name="a segment", constraints=[])
    for number in range(60):
        segments = [segment] if number % 20 == 0 else []
        make_flag(f"flag-{number:02}", PROJECTS[number % 3], strategies=[{"segments": segments}])
    made = ({"projects": None}, {"projects": ["one"]})
    for scope in made:
        make_token("backend", environment="development", **scope)
    return list(ApiToken.objects.order_by("pk"))


def answer(token: ApiToken, query: FeaturesQuery = ALL) -> FeaturesAnswer:
    return get_answer(token, query, using="default")


def any_flag(rng: random.Random) -> Flag:
    return rng.choice(list(Flag.objects.active().order_by("name")))


def switch(rng: random.Random) -> None:
    switch_on(any_flag(rng))


def make_long(rng: random.Random) -> None:
    Flag.objects.filter(pk=any_flag(rng).pk).update(description="d" * rng.choice([0, 10, 2_000]))


def create(rng: random.Random) -> None:
    make_flag(f"flag-{rng.randrange(60):02}{rng.choice('abü')}{Flag.objects.count()}", rng.choice(PROJECTS))


def archive(rng: random.Random) -> None:
    Flag.objects.filter(pk=any_flag(rng).pk).update(archived_at=timezone.now())


def move(rng: random.Random) -> None:
    Flag.objects.filter(pk=any_flag(rng).pk).update(project=rng.choice(PROJECTS))


def use_segment(rng: random.Random) -> None:
    segment = Segment.objects.create(name=f"s{Segment.objects.count()}", constraints=[])
    add_strategy(any_flag(rng), disabled=rng.random() < 0.5, segments=[segment])


def rename_segment(rng: random.Random) -> None:
    Segment.objects.filter(name="a segment").update(constraints=[{"contextName": str(rng.random())}])


def drop_strategies(rng: random.Random) -> None:
    Strategy.objects.filter(flag__project=rng.choice(PROJECTS), flag__name__endswith="3").delete()


def switch_a_project(rng: random.Random) -> None:
    flags = FlagEnvironment.objects.filter(flag__project=rng.choice(PROJECTS), environment="development")
    flags.update(enabled=rng.random() < 0.5)


CHANGES: list[Callable[[random.Random], None]] = [
    switch,
    make_long,
    create,
    archive,
    move,
    use_segment,
    rename_segment,
    drop_strategies,
    switch_a_project,
]


@pytest.mark.parametrize("seed", first_every_day(range(3)))
def test_after_every_change_as_serialized_as_a_whole(tokens: list[ApiToken], seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(12):
        for change in rng.choices(CHANGES, k=rng.choice([1, 1, 3])):
            change(rng)
        for token in rng.sample(tokens, 2):
            for query in (ALL, OLD):
                found = answer(token, query)
                assert found.body == plain_features(token, query)
                assert gzip.decompress(found.gzipped) == found.body
    spliced = {token.pk: answer(token).gzipped for token in tokens}
    cache.clear()
    assert {token.pk: answer(token).gzipped for token in tokens} == spliced  # another worker's


@pytest.mark.parametrize("seed", first_every_day(range(4)))
def test_after_random_changes_as_serialized_as_a_whole(tokens: list[ApiToken], seed: int) -> None:
    """Whatever the action, the flags that a revision is stored with are all that it changed."""
    changes, rng = RandomChanges(seed), random.Random(seed)
    for _ in range(40):
        for _ in range(rng.choice([1, 1, 3])):
            changes.step()
        for query in (ALL, OLD):
            assert answer(tokens[0], query).body == plain_features(tokens[0], query)
    assert len(changes.done) > 15


def test_filters_after_a_change(tokens: list[ApiToken]) -> None:
    query = FeaturesQuery(knows_segments=True, name_prefix="flag-1")
    answer(tokens[0], query)
    switch_on(Flag.objects.get(name="flag-12"))
    switch_on(Flag.objects.get(name="flag-22"))
    spliced = answer(tokens[0], query).body
    cache.clear()
    assert spliced == answer(tokens[0], query).body
    assert spliced.count(b'"enabled":true') == 1


def test_an_answer_without_flags_is_complete(db: None) -> None:
    make_token("backend", environment="development")
    [token] = ApiToken.objects.all()
    assert answer(token).body == plain_features(token, ALL)
    assert gzip.decompress(answer(token).gzipped) == answer(token).body


def test_a_switch_reads_one_flag_and_compresses_one_chunk(
    tokens: list[ApiToken], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = answer(tokens[0])
    _ = before.gzipped
    read = watched(monkeypatch, assembly, "read_flag_parts")
    compressed = watched(monkeypatch, chunks, "deflate")
    switch_on(Flag.objects.get(name="flag-31"))
    after = answer(tokens[0])
    assert compressed == []  # nobody has asked for gzip yet
    _ = after.gzipped
    assert [arguments[1] for arguments in read] == [[Flag.objects.get(name="flag-31").pk]]
    flags = [arguments[0] for arguments in compressed if b'"flag-' in arguments[0]]
    assert len(flags) == 1
    assert b'"flag-31"' in flags[0]
    assert answer(tokens[1]).pieces["one"] is after.pieces["one"]
    assert len(read) == 1  # nothing more, for the other token
    same = [
        name for name, text in after.pieces["one"].flags.items() if text is before.pieces["one"].flags[name]
    ]
    assert len(same) == 19


def watched(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[tuple[Any, ...]]:
    """The arguments of every call of a function from now on."""
    calls: list[tuple[Any, ...]] = []
    real = getattr(module, name)

    def watching(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return real(*args, **kwargs)

    monkeypatch.setattr(module, name, watching)
    return calls


def made(key: bytes, piece: Piece, etag: str = '"e"') -> FeaturesAnswer:
    place = Place("development", inline_segments=False)
    return FeaturesAnswer(
        key, etag, place, {"default": piece}, flags=[], segments=None, query=b"{}", meta=b"{}"
    )


def test_answers_and_deltas_share_pieces_while_one_holds_them(tokens: list[ApiToken]) -> None:
    delta = read_content(Scope("development", None), using="default")
    made_of = answer(tokens[0]).pieces
    assert all(delta.pieces[project] is piece for project, piece in made_of.items())
    key = "one", Place("development", inline_segments=False)
    cache.clear()
    assert assembly.latest.get(key) is delta.pieces["one"]
    del delta, made_of
    assert assembly.latest.get(key) is None


@pytest.mark.parametrize("size", [1, 7])
def test_flags_are_read_in_batches(
    tokens: list[ApiToken], monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(definitions, "BATCH", size)
    for query in (ALL, OLD):
        assert answer(tokens[0], query).body == plain_features(tokens[0], query)


def test_the_cache_is_bounded_in_bytes() -> None:
    bounded = FeaturesCache()
    for number in range(10):
        bounded.put(bytes([number]), made(bytes([number]), Piece(number, {}, {}, {}, 1_000)), limit=3_500)
    assert bounded.nbytes == 3 * 1_100
    assert bounded.current(b"\x00", '"e"') is None
    assert bounded.current(b"\x09", '"e"') is not None
    assert bounded.current(b"\x09", '"f"') is None
    bounded.clear()
    assert bounded.nbytes == 0


def test_a_piece_counts_once() -> None:
    bounded = FeaturesCache()
    older, newer = Piece(1, {}, {}, {}, 1_000), Piece(2, {}, {}, {}, 500)
    for key in (b"1", b"2"):
        bounded.put(key, made(key, older), limit=9_000)
    assert bounded.nbytes == 1_000 + 2 * 100
    bounded.put(b"1", made(b"1", newer), limit=9_000)
    assert bounded.nbytes == 1_500 + 2 * 100
    bounded.put(b"2", made(b"2", newer), limit=9_000)
    assert bounded.nbytes == 500 + 2 * 100


def test_large_bytes_are_kept_compressed(tokens: list[ApiToken], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer(tokens[0]).body
    cache.clear()
    monkeypatch.setattr(features_body, "MAX_KEPT", len(whole) - 1)
    large = answer(tokens[0])
    assert gzip.decompress(large.gzipped) == large.body == whole
    assert large.get_bytes(gzipped=False) == b""
    assert large.get_bytes(gzipped=True) == large.gzipped
    events = Events([chunks.Chunk((whole,))])
    assert gzip.decompress(events.gzipped) == events.body == whole


def test_answers_with_and_without_segments_share_the_flags_that_have_none(tokens: list[ApiToken]) -> None:
    by_id, inlined = (answer(tokens[0], query).pieces["default"].flags for query in (ALL, OLD))
    shared = [name for name, text in by_id.items() if inlined[name] is text]
    assert shared == [name for name in by_id if name not in ("flag-00", "flag-20", "flag-40")]


def test_a_hydration_takes_over_what_an_answer_has_compressed(tokens: list[ApiToken]) -> None:
    make_token("backend", environment="production")
    others = answer(ApiToken.objects.latest("pk")), answer(tokens[0], replace(ALL, name_prefix="flag-1"))
    its_answer, content = answer(tokens[0]), read_content(Scope("development", None), using="default")
    assert all(other.pieces.keys() == its_answer.pieces.keys() for other in others)
    history = History(1, content)
    first = history.events(None) or []
    assert [chunk for chunk in first if chunk.names] == its_answer.flags
    update_flag("one", "flag-01", {"impression_data": True}, caller=Caller.system())
    history.advance(2, read_content(Scope("development", None), using="default"))
    second = history.events(None) or []
    new = [chunk for chunk in second if chunk.names and chunk not in first]
    assert ["flag-01" in chunk.names for chunk in new] == [True]
    events = Events(second)
    [hydration] = orjson.loads(gzip.decompress(events.gzipped))["events"]
    assert events.body == gzip.decompress(events.gzipped)
    assert [flag["name"] for flag in hydration["features"]] == [f"flag-{number:02}" for number in range(60)]
    assert hydration["eventId"] == 2


def test_bytes_made_later_count() -> None:
    bounded = FeaturesCache()
    one = made(b"1", Piece(1, {}, {}, {}, 1_000))
    bounded.put(b"1", one, limit=9_000)
    size = len(one.body)
    bounded.recount(one, limit=9_000)
    assert bounded.nbytes == 1_100 + size
    bounded.recount(made(b"1", Piece(1, {}, {}, {}, 1_000)), limit=9_000)  # no longer the cached one
    assert bounded.get(b"1") is one
