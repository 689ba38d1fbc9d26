"""The segments API: creating, changing and deleting constraints that strategies share."""

import uuid

import pytest

from projects.models import Project, Segment, StrategySegment
from projects.revision import read_revisions
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/segments"
CONSTRAINT = {"contextName": "country", "operator": "IN", "values": ["DE", "FR"]}


@pytest.fixture
def eu(api):
    return (
        api["editor"].post(URL, {"name": "eu", "description": "Europe", "constraints": [CONSTRAINT]}).json()
    )


def use(segment_id, flag):
    strategy = add_strategy(flag)
    StrategySegment.objects.create(strategy=strategy, segment_id=segment_id)
    return strategy


def test_created_as_the_reference_shows_it_once(api, eu):
    shown = api["viewer"].get(f"{URL}/{eu['id']}").json()
    assert shown.pop("createdAt")
    assert shown == {
        "id": eu["id"],
        "name": "eu",
        "description": "Europe",
        "constraints": [CONSTRAINT],
        "createdBy": "editor",
        "usedInFeatures": 0,
        "usedInProjects": 0,
    }
    assert events("segment-created")[0].after["constraints"] == [CONSTRAINT]

    refused(api["editor"].post(URL, {"name": "eu", "constraints": []}), 409, "NameExistsError")
    refused(api["editor"].post(f"{URL}/validate", {"name": "eu"}), 409, "NameExistsError")
    assert api["editor"].post(f"{URL}/validate", {"name": "us"}).status_code == 204
    other = api["editor"].post(URL, {"name": "us", "constraints": []}).json()
    refused(
        api["editor"].put(f"{URL}/{other['id']}", {"name": "eu", "constraints": []}), 409, "NameExistsError"
    )


def test_listed_with_how_often_it_is_used_and_by_strategy(api, eu):
    flag = make_flag("live", "default")
    use(eu["id"], flag)
    use(eu["id"], make_flag("cart"))
    (shown,) = api["viewer"].get(URL).json()["segments"]
    assert (shown["usedInFeatures"], shown["usedInProjects"]) == (2, 2)
    # A reader of shop alone counts only what it can see.
    (shown,) = api["reader"].get(URL).json()["segments"]
    assert (shown["usedInFeatures"], shown["usedInProjects"]) == (1, 1)
    used = api["reader"].get(f"{URL}/{eu['id']}/strategies").json()["strategies"]
    assert [item["featureName"] for item in used] == ["cart"]

    strategy = use(eu["id"], make_flag("cart-2"))
    shown = api["reader"].get(f"{URL}/strategies/{strategy.pk}").json()["segments"]
    assert [segment["name"] for segment in shown] == ["eu"]
    refused(api["outsider"].get(f"{URL}/strategies/{strategy.pk}"), 404, "NotFoundError")
    refused(api["reader"].get(f"{URL}/strategies/{uuid.uuid4()}"), 404, "NotFoundError")
    refused(api["reader"].get(f"{URL}/strategies/nonsense"), 404, "NotFoundError")


def test_put_on_a_strategy(api, eu):
    strategy = add_strategy(make_flag("cart"))
    body = {
        "projectId": "shop",
        "environmentId": "development",
        "strategyId": str(strategy.pk),
        "segmentIds": [eu["id"]],
    }
    url = f"{URL}/strategies"
    response = api["member"].post(url, body)
    assert (response.status_code, response.json()) == (201, body)
    assert [segment.name for segment in strategy.segments.all()] == ["eu"]
    assert api["member"].post(url, body | {"segmentIds": []}).status_code == 201
    assert not strategy.segments.exists()
    refused(api["member"].post(url, body | {"segmentIds": [4711]}), 400, "ValidationError")
    refused(api["member"].post(url, body | {"strategyId": str(uuid.uuid4())}), 404, "NotFoundError")
    refused(api["member"].post(url, body | {"projectId": "default"}), 404, "NotFoundError")


def test_a_change_reaches_the_evaluations(api, eu):
    use(eu["id"], make_flag("live", "default"))
    before = read_revisions(["default", "shop"])
    changed = [{"contextName": "country", "operator": "NOT_IN", "values": ["US"]}]
    response = api["editor"].put(f"{URL}/{eu['id']}", {"name": "eu", "constraints": changed})
    assert response.status_code == 204
    after = read_revisions(["default", "shop"])
    assert after["default"] > before["default"]
    assert after["shop"] == before["shop"]
    (event,) = events("segment-updated")
    assert (event.before["constraints"], event.after["constraints"]) == ([CONSTRAINT], changed)
    assert Segment.objects.get(pk=eu["id"]).description == "Europe"


def test_numbers_become_texts_and_values_are_legal_ones(api):
    constraint = {"contextName": "age", "operator": "NUM_GT", "value": 18}
    made = api["editor"].post(URL, {"name": "adults", "constraints": [constraint]}).json()
    assert made["constraints"] == [{"contextName": "age", "operator": "NUM_GT", "value": "18", "values": []}]

    api["editor"].post("/api/admin/context", {"name": "country", "legalValues": [{"value": "DE"}]})
    record = refused(
        api["editor"].post(URL, {"name": "eu", "constraints": [CONSTRAINT]}), 400, "ValidationError"
    )
    assert record["details"][0]["path"] == "constraints[0].values[1]"


def test_deleted_when_no_strategy_has_it(api, eu):
    strategy = use(eu["id"], make_flag("live", "default"))
    record = refused(api["editor"].delete(f"{URL}/{eu['id']}"), 409, "ConflictError")
    assert "live" in record["message"]
    strategy.delete()
    assert api["editor"].delete(f"{URL}/{eu['id']}").status_code == 204
    assert events("segment-deleted")[0].before["name"] == "eu"


@for_each("method", ["get", "put", "delete"])
@for_each("who", ["viewer", "editor", "outsider", "admin_token", "service"])
def test_an_unknown_id_is_answered(api, who, method):
    """The reference's process ends when a person asks for a segment that is not there."""
    refused(getattr(api[who], method)(f"{URL}/4711", {"name": "x", "constraints": []}), 404, "NotFoundError")
    assert api[who].get(f"{URL}/4711/strategies").status_code == 404
    assert api[who].get(URL).status_code == 200


@for_each("identifier", ["abc", "1.5"])
def test_an_id_that_is_no_number(api, identifier):
    refused(api["editor"].delete(f"{URL}/{identifier}"), 400, "ValidationError")


@for_each(
    ("constraint", "path"),
    [
        ({"contextName": "a", "operator": "NOPE", "values": ["x"]}, "constraints[0].operator"),
        ({"contextName": "a", "operator": "IN", "values": "x"}, "constraints[0].values"),
    ],
)
def test_constraints_that_are_refused(api, constraint, path):
    response = api["editor"].post(URL, {"name": "odd", "constraints": [constraint]})
    record = refused(response, 400, "ValidationError")
    assert path in [problem["path"] for problem in record["details"]]


def test_a_segment_of_one_project(api):
    body = {"name": "baskets", "constraints": [CONSTRAINT], "project": "shop"}
    made = api["owner"].post(URL, body)
    assert made.status_code == 201
    url = f"{URL}/{made.json()['id']}"
    assert api["reader"].get(url).json()["project"] == "shop"
    refused(api["outsider"].get(url), 404, "NotFoundError")
    refused(api["outsider"].delete(url), 404, "NotFoundError")
    refused(api["member"].delete(url), 403, "NoAccessError")
    assert api["owner"].delete(url).status_code == 204


def test_moved_into_a_project_only_when_no_other_uses_it(api, eu):
    use(eu["id"], make_flag("live", "default"))
    change = {"name": "eu", "constraints": [CONSTRAINT], "project": "shop"}
    record = refused(api["admin"].put(f"{URL}/{eu['id']}", change), 400, "ValidationError")
    assert "default" in record["message"]
    StrategySegment.objects.all().delete()
    assert api["admin"].put(f"{URL}/{eu['id']}", change).status_code == 204


def test_not_in_an_archived_project(api, shop):
    segment = Segment.objects.create(name="vip", project=shop)
    free = Segment.objects.create(name="free")
    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    body = {"name": "new", "constraints": [], "project": "shop"}
    refused(api["admin"].post("/api/admin/segments", body, format="json"), 404, "NotFoundError")
    for pk in (segment.pk, free.pk):
        url = f"/api/admin/segments/{pk}"
        refused(api["admin"].put(url, body, format="json"), 404, "NotFoundError")
    refused(api["admin"].delete(f"/api/admin/segments/{segment.pk}"), 404, "NotFoundError")
    assert sorted(Segment.objects.values_list("name", "project")) == [("free", None), ("vip", "shop")]


@for_each(("counts", "status"), [([1000], 201), ([1001], 400), ([500, 500], 201), ([500, 501], 400)])
def test_a_segment_has_up_to_1000_values_in_all(api, counts, status):
    constraints = [
        {"contextName": "userId", "operator": "IN", "values": [f"{index}-{n}" for n in range(count)]}
        for index, count in enumerate(counts)
    ]
    answer = api["editor"].post(
        "/api/admin/segments", {"name": "many", "constraints": constraints}, format="json"
    )
    assert answer.status_code == status
    if status == 400:
        assert "at most 1,000" in answer.content.decode()


def test_a_strategys_constraint_has_up_to_250_values(api, shop):
    make_flag("cart")
    path = "/api/admin/projects/shop/features/cart/environments/development/strategies"
    for count, status in ((250, 200), (251, 400)):
        values = [str(number) for number in range(count)]
        constraint = {"contextName": "userId", "operator": "IN", "values": values}
        body = {"name": "default", "constraints": [constraint]}
        assert api["member"].post(path, body, format="json").status_code == status


def test_the_number_of_values_is_a_setting(api, settings):
    settings.SEGMENT_VALUES_LIMIT = 2
    constraint = {"contextName": "userId", "operator": "IN", "values": ["1", "2", "3"]}
    answer = api["editor"].post(
        "/api/admin/segments", {"name": "x", "constraints": [constraint]}, format="json"
    )
    assert answer.json()["details"] == [
        {
            "path": "constraints",
            "message": "must have at most 2 values in all, not 3. Upload a list for up to 10,000.",
        }
    ]
