"""GET /api/client/features: what SDKs receive, and when they receive 304."""

import gzip
import json

import pytest

from projects.models import Dependency, Flag, FlagEnvironment, FlagTag, Segment
from tests.support.cast import client, make_project, make_token
from tests.support.flags import make_flag
from tests.support.sdk import Sdk, make_sdk

pytestmark = pytest.mark.django_db
CONSTRAINT = {"values": ["NO"], "operator": "IN", "contextName": "country"}


def named(answer) -> list[str]:
    return [flag["name"] for flag in answer.json()["features"]]


def test_flags_have_all_their_members(sdk: Sdk) -> None:
    norwegians = Segment.objects.create(name="norwegians", constraints=[CONSTRAINT])
    variants = [{"name": "blue", "weight": 1000, "stickiness": "userId", "weightType": "variable"}]
    strategy = {"name": "flexibleRollout", "parameters": {"rollout": "50"}, "variants": variants}
    child = make_flag("child", "default", enabled=True, strategies=[strategy | {"segments": [norwegians]}])
    parent = make_flag("parent", "default", description="d", impression_data=True)
    Dependency.objects.create(flag=child, parent=parent, variants=["blue"])
    body = sdk.features().json()
    assert list(body) == ["version", "features", "query", "segments", "meta"]
    assert body["features"] == [
        {
            "name": "child",
            "type": "release",
            "enabled": True,
            "project": "default",
            "stale": False,
            "strategies": [
                {
                    "name": "flexibleRollout",
                    "constraints": [],
                    "parameters": {"rollout": "50"},
                    "variants": variants,
                    "segments": [norwegians.pk],
                }
            ],
            "variants": [],
            "description": None,
            "impressionData": False,
            "dependencies": [{"feature": "parent", "enabled": True, "variants": ["blue"]}],
        },
        {
            "name": "parent",
            "type": "release",
            "enabled": False,
            "project": "default",
            "stale": False,
            "strategies": [],
            "variants": [],
            "description": "d",
            "impressionData": True,
        },
    ]
    assert body["segments"] == [{"id": norwegians.pk, "name": "norwegians", "constraints": [CONSTRAINT]}]
    assert body["query"] == {
        "project": ["default"],
        "environment": "development",
        "inlineSegmentConstraints": False,
    }


def test_environment_and_projects_are_the_keys(shop, sdk: Sdk) -> None:
    make_flag("here", "default", enabled=True)
    make_flag("there", enabled=True)
    assert named(sdk.features("?project=shop&environment=production")) == ["here"]
    assert named(make_sdk(projects=["shop"]).features()) == ["there"]
    everywhere = make_sdk("production").features().json()
    assert [(flag["name"], flag["enabled"]) for flag in everywhere["features"]] == [
        ("here", False),
        ("there", False),
    ]
    assert everywhere["query"] == {"environment": "production", "inlineSegmentConstraints": False}


def test_a_key_without_projects_reaches_nothing(sdk: Sdk) -> None:
    make_flag("here", "default")
    assert named(make_sdk(projects=[]).features()) == []


def test_disabled_strategies_are_left_out(sdk: Sdk) -> None:
    make_flag("some", "default", enabled=True, strategies=[{"disabled": True}, {"name": "userWithId"}])
    make_flag("only", "default", enabled=True, strategies=[{"disabled": True}])
    make_flag("none", "default", enabled=True)
    flags = {flag["name"]: flag for flag in sdk.features().json()["features"]}
    assert [strategy["name"] for strategy in flags["some"]["strategies"]] == ["userWithId"]
    # SDKs take a flag without strategies for on; one whose strategies are all disabled is off.
    assert (flags["only"]["enabled"], flags["only"]["strategies"]) == (False, [])
    assert (flags["none"]["enabled"], flags["none"]["strategies"]) == (True, [])


def test_archived_flags_are_left_out(sdk: Sdk) -> None:
    make_flag("gone", "default", archived_at="2026-01-01T00:00:00Z")
    assert named(sdk.features()) == []


@pytest.mark.parametrize("spec", ["4.2.0", "5.2.0", "6.1.0", "4.3.0-beta.1"])
def test_newer_sdks_get_segments_by_id(sdk: Sdk, spec: str) -> None:
    segment = Segment.objects.create(name="norwegians", constraints=[CONSTRAINT])
    make_flag("flag", "default", enabled=True, strategies=[{"segments": [segment]}])
    body = sdk.features(**{"Unleash-Client-Spec": spec}).json()
    assert body["features"][0]["strategies"][0]["segments"] == [segment.pk]
    assert body["features"][0]["strategies"][0]["constraints"] == []
    assert body["query"]["inlineSegmentConstraints"] is False


@pytest.mark.parametrize("spec", ["", "4.1.9", "4.2.0-beta", "3.0.0"])
def test_older_sdks_get_the_constraints_of_segments(sdk: Sdk, spec: str) -> None:
    segment = Segment.objects.create(name="norwegians", constraints=[CONSTRAINT])
    own = {"values": ["7"], "operator": "IN", "contextName": "userId"}
    make_flag("flag", "default", enabled=True, strategies=[{"constraints": [own], "segments": [segment]}])
    body = sdk.features(**{"Unleash-Client-Spec": spec}).json()
    assert body["features"][0]["strategies"][0] == {
        "name": "default",
        "constraints": [own, CONSTRAINT],
        "parameters": {},
        "variants": [],
    }
    assert "segments" not in body
    assert body["query"]["inlineSegmentConstraints"] is True


@pytest.mark.parametrize("spec", ["v5.2.0", "5.2", "abc", "5.2.0.1"])
def test_a_spec_that_is_no_version_is_refused(sdk: Sdk, spec: str) -> None:
    answer = sdk.features(**{"Unleash-Client-Spec": spec})
    assert (answer.status_code, answer.json()["name"]) == (400, "ValidationError")
    assert spec in answer.json()["message"]


def test_names_and_tags_narrow(sdk: Sdk) -> None:
    tagged = make_flag("sdk-a", "default")
    make_flag("sdk-b", "default")
    make_flag("other", "default")
    FlagTag.objects.create(flag=tagged, tag_type_id="simple", value="team-a")
    answer = sdk.features("?namePrefix=sdk-&tag=simple:team-a&tag=simple:nope")
    assert named(answer) == ["sdk-a"]
    assert answer.json()["query"] == {
        "tag": [["simple", "team-a"], ["simple", "nope"]],
        "project": ["default"],
        "namePrefix": "sdk-",
        "environment": "development",
        "inlineSegmentConstraints": False,
    }
    assert named(sdk.features("?namePrefix=sdk-")) == ["sdk-a", "sdk-b"]
    assert named(sdk.features("?tag=simple:nope")) == []


def test_a_new_tag_is_a_new_answer(sdk: Sdk) -> None:
    flag = make_flag("flag", "default")
    before = sdk.features("?tag=simple:team-a")
    FlagTag.objects.create(flag=flag, tag_type_id="simple", value="team-a")
    after = sdk.features("?tag=simple:team-a", **{"If-None-Match": before["ETag"]})
    assert (after.status_code, named(after)) == (200, ["flag"])


@pytest.mark.parametrize("tag", ["simple", ":x", "simple:", ""])
def test_a_malformed_tag_is_refused(sdk: Sdk, tag: str) -> None:
    answer = sdk.features(f"?tag={tag}")
    assert (answer.status_code, answer.json()["details"][0]["path"]) == (400, "tag[0]")


def test_without_a_change_there_is_no_body(sdk: Sdk) -> None:
    make_flag("flag", "default")
    first = sdk.features()
    etag = first["ETag"]
    assert not etag.startswith("W/")
    assert first.json()["meta"]["etag"] == etag
    for known in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        again = sdk.features(**{"If-None-Match": known})
        assert (again.status_code, again.content, again["ETag"]) == (304, b"", etag)


def test_shared_caches_may_keep_the_answers_of_a_token_and_ask_again(sdk: Sdk) -> None:
    first = sdk.features()
    for answer in (first, sdk.features(**{"If-None-Match": first["ETag"]})):
        assert answer["Cache-Control"] == "public, no-cache"
        assert answer["Vary"] == "Authorization, Accept-Encoding, Unleash-Client-Spec"


def test_caches_keep_no_refusal(sdk: Sdk) -> None:
    wrong = [
        client("*:development.unknown").get("/api/client/features"),
        client(make_token("frontend", environment="development")).get("/api/client/features"),
        sdk.features("?tag=simple"),
        sdk.features("/unknown"),
    ]
    assert [answer.status_code for answer in wrong] == [401, 403, 400, 404]
    assert {answer["Cache-Control"] for answer in wrong} == {"no-store"}


def test_after_a_change_there_is_one(sdk: Sdk) -> None:
    flag = make_flag("flag", "default")
    before = sdk.features()
    FlagEnvironment.objects.filter(flag=flag, environment="development").update(enabled=True)
    after = sdk.features(**{"If-None-Match": before["ETag"]})
    assert after.status_code == 200
    assert after.json()["features"][0]["enabled"] is True
    assert after.json()["meta"]["revisionId"] > before.json()["meta"]["revisionId"]


@pytest.mark.parametrize("other", [{"Unleash-Client-Spec": ""}, {"Unleash-Client-Spec": "4.1.0"}])
def test_etags_are_of_one_form_of_the_document(sdk: Sdk, other: dict) -> None:
    etag = sdk.features()["ETag"]
    assert sdk.features(**other, **{"If-None-Match": etag}).status_code == 200


def test_usage_changes_no_etag(sdk: Sdk) -> None:
    make_flag("flag", "default")
    etag = sdk.features()["ETag"]
    sdk.register("web")
    sdk.count("web", ["flag"])
    assert sdk.features()["ETag"] == etag


def test_a_project_that_comes_or_goes_changes_the_etag_of_a_key_for_all(db: None) -> None:
    sdk = make_sdk()
    first = sdk.features()["ETag"]
    project = make_project("passing")
    second = sdk.features()["ETag"]
    project.environment_links.all().delete()
    project.delete()
    assert first != second
    assert sdk.features()["ETag"] != second


def test_a_poll_without_a_change_costs_two_statements(sdk: Sdk, django_assert_num_queries) -> None:
    make_flag("flag", "default")
    etag = sdk.features()["ETag"]
    with django_assert_num_queries(2):
        sdk.features(**{"If-None-Match": etag})
    with django_assert_num_queries(2):
        assert sdk.features().status_code == 200


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("*", True),
        ("gzip;q=0", False),
        ("br", False),
        ("", False),
    ],
)
def test_gzip_where_it_is_accepted(sdk: Sdk, accepted: str, *, zipped: bool) -> None:
    make_flag("flag", "default")
    answer = sdk.features(**{"Accept-Encoding": accepted})
    assert answer.has_header("Content-Encoding") is zipped
    body = gzip.decompress(answer.content) if zipped else answer.content
    assert json.loads(body)["features"][0]["name"] == "flag"


def test_a_single_flag_is_as_in_the_list(sdk: Sdk) -> None:
    make_flag("flag", "default", enabled=True)
    answer = sdk.features("/flag")
    assert (answer.status_code, answer.json()) == (200, sdk.features().json()["features"][0])


def test_an_unknown_flag_is_not_found(shop, sdk: Sdk) -> None:
    make_flag("basket")
    for name in ("nope", "basket"):
        answer = sdk.features(f"/{name}")
        assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")


def test_head_has_the_etag_and_no_body(sdk: Sdk) -> None:
    answer = sdk.api.head("/api/client/features")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer["ETag"]


def test_what_is_not_offered(sdk: Sdk) -> None:
    answer = sdk.api.get("/api/client/nope")
    assert (answer.status_code, answer.json()["name"]) == (404, "NotFoundError")


def test_flags_come_in_code_point_order(sdk: Sdk) -> None:
    for name in ("b", "a", "B", "ä"):
        make_flag(name, "default")
    assert named(sdk.features()) == ["B", "a", "b", "ä"]
    assert Flag.objects.count() == 4
