"""GET /api/client/delta: events since a version."""

import gzip
import time
from random import Random
from typing import Any

import pytest

from projects.models import Flag, FlagTag, Project, SdkVersion, Segment
from sdk.delta import history
from sdk.delta.states import Scope, forget_unused, states
from tests.sdk.delta.client import DeltaSdk
from tests.support.cast import make_project
from tests.support.examples import first_every_day
from tests.support.flags import add_strategy, make_flag, switch_on
from tests.support.random_changes import RandomChanges
from tests.support.sdk import Sdk

pytestmark = pytest.mark.django_db
CONSTRAINTS = [{"values": ["NO"], "operator": "IN", "contextName": "country"}]


@pytest.fixture
def segment() -> Segment:
    return Segment.objects.create(name="norwegians", constraints=CONSTRAINTS)


def test_everything_then_nothing_then_changes(shop: Project) -> None:
    a, _ = make_flag("a"), make_flag("b")
    sdk = DeltaSdk()
    assert sdk.poll() == [("hydration", ["a", "b"])]
    assert sdk.poll() == []
    switch_on(a)
    assert sdk.poll() == [("feature-updated", "a")]
    assert sdk.flags["a"]["enabled"] is True
    a.delete()
    make_flag("c")
    assert sdk.poll() == [("feature-updated", "c"), ("feature-removed", "a")]
    assert sdk.is_current()
    assert sdk.poll() == []


def test_an_archived_flag_is_removed_and_comes_back(shop: Project) -> None:
    flag = make_flag("a", archived=True)
    sdk = DeltaSdk()
    assert sdk.poll() == [("hydration", [])]
    Flag.objects.update(archived_at=None)
    assert sdk.poll() == [("feature-updated", "a")]
    Flag.objects.update(archived_at=flag.archived_at)
    assert sdk.poll() == [("feature-removed", "a")]


def test_segments_come_before_the_flags_that_refer_to_them(shop: Project, segment: Segment) -> None:
    flag = make_flag("a")
    sdk = DeltaSdk()
    sdk.poll()
    strategy = add_strategy(flag, segments=[segment])
    assert sdk.poll() == [("segment-updated", segment.pk), ("feature-updated", "a")]
    segment.constraints = []
    segment.save()
    assert sdk.poll() == [("segment-updated", segment.pk)]
    assert sdk.segments[segment.pk]["constraints"] == []
    strategy.delete()
    assert sdk.poll() == [("feature-updated", "a"), ("segment-removed", segment.pk)]
    assert sdk.is_current()


def test_a_moved_flag_is_removed_for_those_who_no_longer_see_it(shop: Project) -> None:
    make_project("docs")
    flag = make_flag("a")
    shop_sdk, docs_sdk, all_sdk = (DeltaSdk(projects=p) for p in (["shop"], ["docs"], None))
    for sdk in (shop_sdk, docs_sdk, all_sdk):
        sdk.poll()
    flag.project_id = "docs"
    flag.save()
    assert shop_sdk.poll() == [("feature-removed", "a")]
    assert docs_sdk.poll() == [("feature-updated", "a")]
    assert all_sdk.poll() == [("feature-updated", "a")]
    assert all_sdk.flags["a"]["project"] == "docs"


def test_a_removed_flag_says_where_it_was(shop: Project) -> None:
    flag = make_flag("a")
    sdk = DeltaSdk()
    sdk.poll()
    flag.delete()
    [event] = sdk.get().json()["events"]
    assert event == {
        "type": "feature-removed",
        "eventId": event["eventId"],
        "featureName": "a",
        "project": "shop",
    }


def test_a_change_elsewhere_is_no_event(shop: Project) -> None:
    make_project("docs")
    flag = make_flag("a")
    sdk = DeltaSdk(projects=["shop"])
    sdk.poll()
    make_flag("b", "docs")
    switch_on(flag, "production")
    assert sdk.get().status_code == 304


def test_flags_of_a_deleted_project_are_removed(shop: Project) -> None:
    make_flag("a")
    sdk, own = DeltaSdk(), DeltaSdk(projects=["default", "shop"])
    sdk.poll(), own.poll()
    Flag.objects.all().delete()
    shop.delete()
    assert sdk.poll() == [("feature-removed", "a")]
    assert own.poll() == [("hydration", [])]  # it reads other projects than before


def test_ids_of_another_scope_mean_nothing(shop: Project) -> None:
    """Of a token that could read other projects, for example: what it must lose would be in no event."""
    flag = make_flag("a")
    shop_sdk, all_sdk = DeltaSdk(projects=["shop"]), DeltaSdk()
    shop_sdk.poll(), all_sdk.poll()
    for _ in range(3):
        flag.name += "a"
        flag.save()
        shop_sdk.poll(), all_sdk.poll()
    assert shop_sdk.etag != all_sdk.etag
    for sdk, other in ((shop_sdk, all_sdk), (all_sdk, shop_sdk)):
        assert [event["type"] for event in sdk.get(other.etag).json()["events"]] == ["hydration"]


@pytest.mark.parametrize(
    "etag", ['"1"', '"4294967295"', '"99999999999999999999"', '"x"', "x", '""', '"-1"', '"١"']
)
def test_unknown_ids_get_everything(shop: Project, etag: str) -> None:
    make_flag("a")
    assert [event["type"] for event in DeltaSdk().get(etag).json()["events"]] == ["hydration"]


def test_ids_are_compared_weakly_and_in_lists(shop: Project) -> None:
    sdk = DeltaSdk()
    sdk.poll()
    assert sdk.get(f"W/{sdk.etag}").status_code == 304
    assert sdk.get(f'"1", {sdk.etag}').status_code == 304
    assert sdk.get()["ETag"] == sdk.etag


def test_event_ids_grow(shop: Project) -> None:
    flag = make_flag("a")
    sdk, ids = DeltaSdk(), []
    for _ in range(3):
        sdk.poll()
        ids.append(int(sdk.etag.strip('"')))
        flag.description = str(ids)
        flag.save()
    assert ids == sorted(set(ids))


def test_a_started_worker_gives_the_same_ids(shop: Project) -> None:
    flag = make_flag("a")
    sdk, old = DeltaSdk(), DeltaSdk()
    old.poll()
    switch_on(flag)
    sdk.poll()
    states.clear()
    assert sdk.poll() == []  # knows all there is, whoever told it
    assert old.poll() == [("hydration", ["a"])]  # what happened before it started, the worker does not know
    assert old.etag == sdk.etag


def test_a_worker_that_is_behind_tells_nothing(shop: Project) -> None:
    """With a replica: the SDK has got a later state from another worker, and must not go back."""
    sdk = DeltaSdk()
    sdk.poll()
    [known] = SdkVersion.objects.all()
    known.version += 10
    known.save()
    assert sdk.get(f'"{known.version}"').status_code == 304
    assert sdk.get(f'"{known.version + 1}"').status_code == 200


def test_after_a_backup_was_restored(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    sdk, given = DeltaSdk(), int(time.time()) - 60
    sdk.poll()
    SdkVersion.objects.update(version=given - 1000)
    monkeypatch.setattr("sdk.delta.states.TRUSTED", 0)
    [event] = sdk.get(f'"{given}"').json()["events"]
    assert (event["type"], event["eventId"]) == ("hydration", given - 1000)
    make_flag("a")
    [event] = sdk.get(f'"{given}"').json()["events"]
    assert event["type"] == "hydration"
    assert event["eventId"] > given


def test_history_is_bounded(shop: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "CHANGES_KEPT", 2)
    old, sdk = DeltaSdk(), DeltaSdk()
    old.poll(), sdk.poll()
    for name in "abc":
        make_flag(name)
        assert sdk.poll()[-1] in [("feature-updated", name), ("hydration", ["a", "b", "c"])]
    assert old.poll() == [("hydration", ["a", "b", "c"])]
    assert sdk.is_current()


def test_states_are_bounded_beside_those_that_are_held(shop: Project, settings: Any) -> None:
    settings.CLIENT_FEATURES_CACHE_BYTES = 10_000
    held = states.get(Scope("development", ("held",)))
    for number in range(100):
        states.get(Scope("development", (str(number),)))
    assert states.nbytes <= 10_000
    assert len(states._states) <= 4
    assert states.get(Scope("development", ("held",))) is held


def test_unused_versions_are_forgotten(shop: Project) -> None:
    DeltaSdk().poll()
    forget_unused()
    assert SdkVersion.objects.exists()
    SdkVersion.objects.update(seen_at="2020-01-01T00:00:00Z")
    states.clear()
    DeltaSdk().poll()
    forget_unused()
    assert SdkVersion.objects.exists()  # it was used again
    SdkVersion.objects.update(seen_at="2020-01-01T00:00:00Z")
    forget_unused()
    assert not SdkVersion.objects.exists()


def test_a_name_prefix_filters_events(shop: Project) -> None:
    flag, other = make_flag("a.1"), make_flag("b.1")
    sdk = DeltaSdk(query="?namePrefix=a.")
    assert sdk.poll() == [("hydration", ["a.1"])]
    switch_on(other)
    assert sdk.poll() == []
    switch_on(flag)
    other.delete()
    assert sdk.poll() == [("feature-updated", "a.1")]


def test_tags_filter_events(shop: Project) -> None:
    tag = {"tag_type_id": "simple", "value": "xx"}
    one, two = make_flag("a"), make_flag("b")
    FlagTag.objects.create(flag=one, **tag)
    sdk = DeltaSdk(query="?tag=simple:xx")
    assert sdk.poll() == [("hydration", ["a"])]
    switch_on(two)
    assert sdk.poll() == []
    switch_on(one)
    assert sdk.poll() == [("feature-updated", "a")]
    FlagTag.objects.create(flag=two, **tag)
    assert sdk.poll() == [("hydration", ["a", "b"])]
    assert sdk.get().status_code == 304
    assert sdk.sdk.api.get("/api/client/delta?tag=x").status_code == 400


def test_events_are_compressed_for_who_accepts_gzip(shop: Project) -> None:
    for number in range(10):
        make_flag(f"flag-{number}", description="d" * 100)
    api = DeltaSdk().sdk.api
    plain, zipped = (api.get("/api/client/delta", headers={"Accept-Encoding": e}) for e in ("", "gzip"))
    assert "Content-Encoding" not in plain
    assert zipped["Content-Encoding"] == "gzip"
    assert plain["Vary"] == zipped["Vary"] == "Authorization, Accept-Encoding, If-None-Match"
    assert gzip.decompress(zipped.content) == plain.content


def test_nothing_is_read_or_written_while_nothing_changes(
    shop: Project, django_assert_num_queries, sdk: Sdk
) -> None:
    one = DeltaSdk(sdk)
    one.poll()
    one.poll()
    with django_assert_num_queries(2):  # the token, and the revisions
        assert one.poll() == []


@pytest.mark.parametrize("seed", first_every_day(range(2)))
def test_sdks_stay_current_through_random_changes(shop: Project, seed: int) -> None:
    """Whenever it asks, an SDK then has what one has that gets everything."""
    make_project("docs")
    changes, random = RandomChanges(seed), Random(seed)
    sdks = [DeltaSdk(projects=p) for p in (None, None, ["shop"], ["docs", "shop"])]
    for _ in range(30):
        for _ in range(random.choice([1, 1, 3])):
            changes.step()
        for sdk in sdks:
            if random.random() < 0.6:
                sdk.poll()
                assert sdk.is_current()
