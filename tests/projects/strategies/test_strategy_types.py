"""Built-in strategy types cannot be changed; custom types can be created for SDKs that implement them."""

from projects.models import StrategyType
from tests.support.flags import add_strategy, make_flag
from tests.support.for_each import for_each
from tests.support.records import events, refused

URL = "/api/admin/strategies"
BODY = {
    "name": "hostGroup",
    "description": "x",
    "parameters": [{"name": "p1", "type": "string", "required": True}],
}


def test_created_as_the_reference_shows_it(api):
    assert api["editor"].post(URL, BODY).status_code == 201
    assert api["viewer"].get(f"{URL}/hostGroup").json() == {
        "name": "hostGroup",
        "title": None,
        "displayName": None,
        "description": "x",
        "editable": True,
        "deprecated": False,
        "parameters": [{"name": "p1", "type": "string", "description": "", "required": True}],
    }
    assert events("strategy-created")[0].subject == "hostGroup"


def test_built_in_ones_are_listed_and_stay(api):
    listed = api["viewer"].get(URL).json()
    assert listed["version"] == 1
    shown = {item["name"]: item["editable"] for item in listed["strategies"]}
    assert shown["flexibleRollout"] is False
    assert shown["default"] is False
    rollout = next(item for item in listed["strategies"] if item["name"] == "flexibleRollout")
    assert (rollout["title"], rollout["displayName"]) == (None, "Gradual rollout")

    refused(api["admin"].delete(f"{URL}/flexibleRollout"), 403, "InvalidOperationError")
    refused(api["admin"].put(f"{URL}/flexibleRollout", {"parameters": []}), 403, "InvalidOperationError")
    refused(api["admin"].post(f"{URL}/default/deprecate", {}), 403, "InvalidOperationError")

    refused(api["editor"].post(URL, BODY | {"name": "default"}), 409, "NameExistsError")


def test_changed_deprecated_and_reactivated(api):
    api["editor"].post(URL, BODY)
    assert api["editor"].put(f"{URL}/hostGroup", {"description": "y", "parameters": []}).status_code == 200
    assert api["editor"].post(f"{URL}/hostGroup/deprecate", {}).status_code == 200
    assert StrategyType.objects.get(name="hostGroup").deprecated is True
    assert api["editor"].post(f"{URL}/hostGroup/reactivate", {}).status_code == 200
    shown = StrategyType.objects.get(name="hostGroup")
    assert (shown.description, shown.parameters, shown.deprecated) == ("y", [], False)
    kinds = ("strategy-updated", "strategy-deprecated", "strategy-reactivated")
    assert [event.type for event in events(*kinds)] == list(kinds)


def test_deleted_when_no_strategy_is_of_it(api):
    api["editor"].post(URL, BODY)
    strategy = add_strategy(make_flag("live", "default"), name="hostGroup")
    record = refused(api["editor"].delete(f"{URL}/hostGroup"), 409, "ConflictError")
    assert "live" in record["message"]
    strategy.delete()
    assert api["editor"].delete(f"{URL}/hostGroup").status_code == 200
    assert events("strategy-deleted")[0].before["name"] == "hostGroup"


@for_each(
    ("parameters", "path"),
    [
        ([{"name": "p", "type": "color"}], "parameters[0].type"),
        ([{"type": "string"}], "parameters[0].name"),
        ([{"name": "p"}], "parameters[0].type"),
        (["p"], "parameters[0]"),
        ([{"name": "p", "type": "string"}] * 2, "parameters[1].name"),
    ],
)
def test_parameters_that_are_refused(api, parameters, path):
    record = refused(api["editor"].post(URL, {"name": "x", "parameters": parameters}), 400, "ValidationError")
    assert path in [problem["path"] for problem in record["details"]]


@for_each("call", ["", "/deprecate", "/reactivate"])
def test_an_unknown_type(api, call):
    refused(
        api["editor"].post(f"{URL}/nope{call}", {}) if call else api["editor"].get(f"{URL}/nope"),
        404,
        "NotFoundError",
    )
    refused(api["editor"].delete(f"{URL}/nope"), 404, "NotFoundError")
