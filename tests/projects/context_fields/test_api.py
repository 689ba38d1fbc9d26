"""The context fields API: creating, changing and deleting the fields that constraints use."""

from projects.models import ContextField, Project
from tests.support.cast import make_project
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/context"


def test_created_as_the_reference_shows_it_under_a_free_name(api):
    body = {"name": "refTier", "legalValues": [{"value": "a"}, {"value": "b", "description": "second"}]}
    response = api["editor"].post(URL, body)
    assert response.status_code == 201
    field = api["viewer"].get(f"{URL}/refTier").json()
    assert field.pop("createdAt").endswith("Z")
    assert field == {
        "name": "refTier",
        "description": None,
        "stickiness": False,
        "sortOrder": 10,
        "legalValues": [{"value": "a"}, {"value": "b", "description": "second"}],
    }
    (event,) = events("context-field-created")
    assert (event.subject, event.actor_name, event.after["name"]) == ("refTier", "editor", "refTier")

    refused(api["editor"].post(URL, {"name": "userId"}), 409, "NameExistsError")
    refused(api["editor"].post(f"{URL}/validate", {"name": "userId"}), 409, "NameExistsError")
    assert api["editor"].post(f"{URL}/validate", {"name": "free"}).status_code == 200


def test_listed_with_how_often_it_is_used_whatever_is_stored(api):
    api["editor"].post(URL, {"name": "tier"})
    live, archived = make_flag("live", "default"), make_flag("old", "default", archived=True)
    for flag in (live, live, archived):
        add_strategy(flag, constraints=[{"contextName": "tier", "operator": "IN", "values": ["a"]}])
    shown = {field["name"]: field for field in api["viewer"].get(URL).json()}
    assert shown["tier"]["usedInFeatures"] == 1
    assert shown["tier"]["usedInProjects"] == 1
    assert shown["userId"]["usedInFeatures"] == 0

    add_strategy(make_flag("odd", "default"), constraints={"not": "a list"})
    add_strategy(make_flag("odder", "default"), constraints=["text", None, {"operator": "IN"}])
    assert api["viewer"].get(URL).status_code == 200


def test_changed_leaving_what_is_not_given(api):
    api["editor"].post(URL, {"name": "tier", "description": "kept", "stickiness": True})
    assert api["editor"].put(f"{URL}/tier", {"legalValues": [{"value": "a"}]}).status_code == 200
    field = ContextField.objects.get(name="tier")
    assert (field.description, field.stickiness, field.legal_values) == ("kept", True, [{"value": "a"}])
    (event,) = events("context-field-updated")
    assert event.before["legalValues"] == []
    assert event.after["legalValues"] == [{"value": "a"}]

    assert api["editor"].put(f"{URL}/tier", {"stickiness": True}).status_code == 200
    assert events("context-field-updated") == [event]


def test_legal_values_one_by_one(api):
    api["editor"].post(URL, {"name": "tier", "legalValues": [{"value": "a"}]})
    legal_values = f"{URL}/tier/legal-values"
    assert api["editor"].post(legal_values, {"value": "b/c", "description": "new"}).status_code == 200
    assert api["editor"].post(legal_values, {"value": "a", "description": "described"}).status_code == 200
    assert ContextField.objects.get(name="tier").legal_values == [
        {"value": "a", "description": "described"},
        {"value": "b/c", "description": "new"},
    ]
    assert api["editor"].delete(f"{legal_values}/b/c").status_code == 200
    assert api["editor"].delete(f"{legal_values}/never-there").status_code == 200
    assert [item["value"] for item in ContextField.objects.get(name="tier").legal_values] == ["a"]


def test_deleted_while_constraints_go_on(api):
    api["editor"].post(URL, {"name": "tier"})
    constraint = {"contextName": "tier", "operator": "IN", "values": ["a"]}
    strategy = add_strategy(make_flag("live", "default"), constraints=[constraint])
    used = api["viewer"].get(f"{URL}/tier/strategies").json()["strategies"]
    assert used == [
        {
            "id": str(strategy.pk),
            "projectId": "default",
            "featureName": "live",
            "strategyName": "default",
            "environment": "development",
        }
    ]
    assert api["editor"].delete(f"{URL}/tier").status_code == 200
    strategy.refresh_from_db()
    assert strategy.constraints == [constraint]
    assert events("context-field-deleted")[0].before["name"] == "tier"


@for_each("name", ["", "a b", "ä", "a/b", ".", "..", "x" * 101])
def test_a_name_that_cannot_stand_in_an_address(api, name):
    refused(api["editor"].post(URL, {"name": name}), 400, "ValidationError")
    refused(api["editor"].post(f"{URL}/validate", {"name": name}), 400, "ValidationError")


@for_each(
    ("values", "path"),
    [
        ([{"value": "a"}, {"value": "a"}], "legalValues[1].value"),
        ([{"value": "x" * 101}], "legalValues[0].value"),
        ([{"description": "no value"}], "legalValues[0].value"),
        (["a"], "legalValues[0]"),
        ([{"value": ""}], "legalValues[0].value"),
    ],
)
def test_legal_values_that_are_refused(api, values, path):
    record = refused(api["editor"].post(URL, {"name": "tier", "legalValues": values}), 400, "ValidationError")
    assert path in [problem["path"] for problem in record["details"]]


@for_each(
    ("method", "path"),
    [("get", ""), ("put", ""), ("delete", ""), ("get", "/strategies"), ("post", "/legal-values")],
)
def test_an_unknown_field(api, method, path):
    response = getattr(api["editor"], method)(f"{URL}/nope{path}", {"value": "a"} if method == "post" else {})
    refused(response, 404, "NotFoundError")


def test_an_owner_keeps_the_fields_of_the_project(api):
    url = "/api/admin/projects/shop/context"
    assert api["owner"].post(url, {"name": "basket"}).status_code == 201
    assert [field["name"] for field in api["reader"].get(url).json()] == ["basket"]
    assert "basket" not in [field["name"] for field in api["viewer"].get(URL).json()]
    assert api["owner"].put(f"{url}/basket", {"stickiness": True}).status_code == 200
    refused(api["member"].delete(f"{url}/basket"), 403, "NoAccessError")
    assert api["owner"].delete(f"{url}/basket").status_code == 200


def test_fields_of_projects_are_listed_with_the_global_ones_on_request(api):
    make_project("depot")
    for project, name in (("shop", "basket"), ("depot", "crate")):
        ContextField.objects.create(name=name, project_id=project)
    every = names(api["admin"], URL)

    assert names(api["admin"], f"{URL}?include=project") == every | {"basket", "crate"}
    assert names(api["reader"], f"{URL}?include=project") == every | {"basket"}
    usable = "/api/admin/projects/shop/context?include=root"
    assert names(api["admin"], usable) == names(api["reader"], usable) == every | {"basket"}


def names(client, url):
    return {field["name"] for field in client.get(url).json()}


def test_the_right_in_one_project_reaches_no_other(api):
    make_project("depot")
    body = {"name": "crate", "project": "depot"}
    # Whoever cannot see a project does not learn whether it is there.
    refused(api["owner"].post(URL, body), 403, "NoAccessError")
    refused(api["owner"].post(URL, body | {"project": "nosuch"}), 403, "NoAccessError")
    record = refused(api["editor"].post(URL, body | {"project": "nosuch"}), 400, "ValidationError")
    assert record["details"][0]["path"] == "project"
    assert api["admin"].post(URL, body).status_code == 201
    refused(api["owner"].get(f"{URL}/crate"), 404, "NotFoundError")
    refused(api["owner"].delete(f"{URL}/crate"), 404, "NotFoundError")
    refused(api["owner"].delete("/api/admin/projects/shop/context/crate"), 404, "NotFoundError")


def test_not_in_an_archived_project(api, shop):
    ContextField.objects.create(name="basket", project=shop)
    Project.objects.filter(pk="shop").update(archived_at="2026-01-01T00:00:00Z")
    fields = "/api/admin/projects/shop/context"
    for response in (
        api["admin"].post(fields, {"name": "tier"}, format="json"),
        api["admin"].post("/api/admin/context", {"name": "tier", "project": "shop"}, format="json"),
        api["admin"].put(f"{fields}/basket", {"description": "new"}, format="json"),
        api["admin"].delete(f"{fields}/basket"),
    ):
        refused(response, 404, "NotFoundError")
    assert list(ContextField.objects.filter(project=shop).values_list("name", flat=True)) == ["basket"]
