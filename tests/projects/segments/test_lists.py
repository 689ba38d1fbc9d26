"""Lists of segments: what files are read, how a list changes, what is recorded, and what SDKs get."""

from typing import Any

import pytest

from projects.models import Segment
from projects.models.versions import SegmentVersion
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/segments"
CSV, TEXT = "text/csv", "text/plain"
MANY = [f"user-{number}" for number in range(1_200)]


@pytest.fixture
def vip(api: Any) -> int:
    return int(api["editor"].post(URL, {"name": "vip", "constraints": []}).json()["id"])


def put(
    api: Any, segment: int, body: Any, kind: str = TEXT, query: str = "", who: str = "editor", **headers: str
) -> Any:
    if kind == "application/json":
        return api[who].put(f"{URL}/{segment}/list?{query}", body, headers=headers)
    return api[who].put(f"{URL}/{segment}/list?{query}", data=body, content_type=kind, headers=headers)


def stored(segment: int) -> list[Any]:
    return Segment.objects.get(pk=segment).constraints


@for_each(
    ("body", "kind", "query"),
    [
        ("7\r\n 42 \n\n7\n", TEXT, ""),
        ("\ufeffuserId,country\n7,NO\n42,DE\n", CSV, ""),
        ('id;"mail"\n1;7\n2;42\n3;\n', CSV, "column=mail"),
        ("whatever\n7\n42\n", CSV, ""),
        ({"values": ["7", "42", "7"]}, "application/json", ""),
    ],
)
def test_forms_of_a_list(api: Any, vip: int, body: Any, kind: str, query: str) -> None:
    answer = put(api, vip, body, kind, query)

    assert answer.status_code == 200, answer.content
    assert (answer.json()["values"], answer.json()["added"], answer.json()["firstAdded"]) == (
        2,
        2,
        ["7", "42"],
    )
    assert stored(vip)[0]["operator"] == "IN"
    assert api["viewer"].get(f"{URL}/{vip}/list").json()["values"] == ["7", "42"]


@pytest.mark.parametrize(
    ("body", "kind", "query", "path", "message"),
    [
        ("a,b\n1,2\n", CSV, "", "column", "name the column with the values. Available: a, b"),
        ("a,b\n1,2\n", CSV, "column=c", "column", "the file has no column c. Available: a, b"),
        ('userId\n"1\n', CSV, "", "row 2", "is not valid CSV: unexpected end of data"),
        ("\n1", CSV, "", "row 1", "must name the columns"),
        ("1\n" + "x" * 101, TEXT, "", "line 2", "must have at most 100 characters, not 101"),
        ("1\na\\\n", TEXT, "", "line 2", "must not end in a backslash, which SDKs cannot read"),
        (b"1\n\xff\n", TEXT, "", "file", "must be text in UTF-8; byte 2 is not"),
        ("\n \n", TEXT, "", "values", "a list needs at least one value: an empty one would match nobody"),
        ("1\n2\n3\n4\n", TEXT, "", "line 4", "a list must have at most 3 values"),
        ("1\n", TEXT, "mode=swap", "mode", "must be add, remove or replace, not swap"),
    ],
)
def test_what_is_refused(
    api: Any, vip: int, settings: Any, body: Any, kind: str, query: str, path: str, message: str
) -> None:
    settings.SEGMENT_LIST_LIMIT = settings.SEGMENT_VALUES_LIMIT = 3

    record = refused(put(api, vip, body, kind, query), 400, "ValidationError")

    assert record["details"] == [{"path": path, "message": message}]
    assert stored(vip) == []


def test_a_list_takes_the_place_of_values_and_keeps_the_rest(api: Any) -> None:
    plan = {"contextName": "plan", "operator": "IN", "values": ["pro"]}
    mail = {"contextName": "mail", "operator": "IN", "values": ["a@x", "b@x"], "inverted": True}
    segment = api["editor"].post(URL, {"name": "no", "constraints": [mail, plan]}).json()["id"]

    added = put(api, segment, "c@x\na@x", query="mode=add").json()
    assert (added["added"], added["removed"], added["contextName"]) == (1, 0, "mail")
    removed = put(api, segment, "a@x\nz@x", query="mode=remove").json()
    assert (removed["firstRemoved"], removed["values"]) == (["a@x"], 2)
    tried = put(api, segment, "d@x", query="dryRun=true").json()
    assert (tried["added"], tried["removed"]) == (1, 2)

    assert stored(segment) == [mail | {"values": ["b@x", "c@x"]}, plan]
    put(api, segment, "c@x\nb@x")
    assert len(events("segment-updated")) == 2  # the same values in another order are no change


def test_only_in_has_a_list(api: Any) -> None:
    adults = {"contextName": "age", "operator": "NUM_GT", "value": "17"}
    segment = api["editor"].post(URL, {"name": "adults", "constraints": [adults]}).json()["id"]

    record = refused(put(api, segment, "1"), 400, "ValidationError")

    assert record["details"] == [
        {"path": "constraints[0].operator", "message": "must be IN for a list, not NUM_GT"}
    ]


def test_permissions_and_conflicts(api: Any, vip: int) -> None:
    put(api, vip, "1", who="editor")
    tag = api["editor"].get(f"{URL}/{vip}/list")["ETag"]
    refused(put(api, vip, "2", who="viewer"), 403, "NoAccessError")
    assert put(api, vip, "2", **{"If-Match": tag}).status_code == 200

    refused(put(api, vip, "3", **{"If-Match": tag}), 412, "PreconditionFailedError")
    assert stored(vip)[0]["values"] == ["2"]


def test_typed_values_have_their_own_limit_and_a_list_survives_other_edits(api: Any, vip: int) -> None:
    put(api, vip, "\n".join(MANY))
    segment = api["editor"].get(f"{URL}/{vip}").json()
    body = {"name": "vips", "constraints": segment["constraints"]}

    assert api["editor"].put(f"{URL}/{vip}", body).status_code == 204
    body["constraints"][0]["values"] = MANY[1:]
    record = refused(api["editor"].put(f"{URL}/{vip}", body), 400, "ValidationError")

    assert "must have at most 1,000 values in all, not 1,199" in record["message"]
    assert stored(vip)[0]["values"] == MANY


def test_the_audit_log_holds_the_difference_and_reverting_restores_the_whole_list(api: Any, vip: int) -> None:
    put(api, vip, "\n".join(MANY))
    put(api, vip, "\n".join(["new", *MANY[2:]]))

    event = events("segment-updated")[-1]
    assert event.after["listChange"] == {
        "added": 1, "removed": 2, "firstAdded": ["new"], "firstRemoved": ["user-0", "user-1"],
    }  # fmt: skip
    for side, count in ((event.before, 1_200), (event.after, 1_199)):
        constraint = side["constraints"][0]
        assert (len(constraint["values"]), constraint["valuesCount"]) == (10, count)
    assert SegmentVersion.objects.filter(id=vip).count() == 3

    assert api["editor"].post(f"/api/admin/events/{event.pk}/revert").status_code == 200
    assert stored(vip)[0]["values"] == MANY


def test_what_it_weighs(api: Any, vip: int) -> None:
    segment = Segment.objects.get(pk=vip)
    cart, pay = make_flag("cart"), make_flag("pay")
    for flag, environment in ((cart, "production"), (pay, "production"), (pay, "development")):
        add_strategy(flag, environment, segments=[segment])
    weight = put(api, vip, "\n".join(f"{number:08}" for number in range(5_001))).json()["weight"]

    assert weight["environments"] == ["production", "development"]
    assert weight["strategies"] == 3
    assert 55_000 < weight["bytes"] < 56_000
    assert weight["totalBytes"] == 2 * weight["bytes"]
    assert weight["warning"].startswith("Each SDK downloads all 5,001 values after each change (55 kB).")
