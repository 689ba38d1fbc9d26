"""Release templates by API: of all projects, and of one."""

from typing import Any

from flagadmin.core.audit.models import AuditEvent
from tests.support.for_each import for_each

GLOBAL = "/api/admin/release-plan-templates"
OWN = "/api/admin/projects/shop/release-templates"


def strategy(rollout: int) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": f"{rollout}"}}


def template(name: str = "Careful") -> dict[str, Any]:
    return {
        "name": name,
        "milestones": [
            {"name": "Some", "strategies": [strategy(25)], "transitionCondition": {"intervalMinutes": 60}},
            {"name": "All", "strategies": [strategy(100)]},
        ],
    }


def create(by: Any, url: str = GLOBAL, **members: Any) -> Any:
    return by.post(url, template() | members, format="json")


def test_a_template_is_created_read_changed_and_deleted(api, shop):
    made = create(api["editor"]).json()
    assert made["discriminator"] == "template"
    assert [milestone["name"] for milestone in made["milestones"]] == ["Some", "All"]
    first = made["milestones"][0]
    assert first["transitionCondition"] == {"intervalMinutes": 60}
    assert (first["startedAt"], first["sortOrder"]) == (None, 0)
    assert first["strategies"][0]["strategyName"] == "flexibleRollout"
    assert first["strategies"][0]["parameters"] == {"rollout": "25"}
    url = f"{GLOBAL}/{made['id']}"
    assert api["viewer"].get(url).json() == made
    changed = api["editor"].put(url, made | {"name": "Slow"}, format="json").json()
    assert changed == made | {"name": "Slow"}
    assert api["admin"].delete(url).status_code == 200
    assert api["viewer"].get(url).status_code == 404
    assert list(AuditEvent.objects.order_by("id").values_list("type", flat=True)) == [
        "release-plan-template-created",
        "release-plan-template-updated",
        "release-plan-template-deleted",
    ]


def test_milestones_and_strategies_are_in_the_order_that_they_name_or_have(api, shop):
    milestones = [{"name": "First", "sortOrder": 0}, {"name": "Second", "sortOrder": 1}, {"name": "Third"}]
    made = create(api["editor"], milestones=milestones).json()
    assert [milestone["name"] for milestone in made["milestones"]] == ["First", "Second", "Third"]

    strategies = [strategy(10) | {"sortOrder": place} for place in (0, None)]
    made = create(
        api["editor"], name="All", milestones=[{"name": "All", "strategies": [*strategies, strategy(20)]}]
    )
    listed = made.json()["milestones"][0]["strategies"]
    assert [each["parameters"]["rollout"] for each in listed] == ["10", "10", "20"]

    strategies = [strategy(50) | {"title": "B", "sortOrder": 1}, strategy(5) | {"title": "A", "sortOrder": 0}]
    [milestone] = create(
        api["editor"], name="Some", milestones=[{"name": "Some", "strategies": strategies}]
    ).json()["milestones"]
    assert titles(milestone) == ["A", "B"]


def test_milestones_and_strategies_are_edited_one_by_one(api, shop):
    made = create(api["editor"]).json()
    milestones = f"{GLOBAL}/{made['id']}/milestones"
    added = api["editor"].post(milestones, {"name": "Bye"}, format="json").json()
    assert (added["name"], added["sortOrder"], added["strategies"]) == ("Bye", 2, [])
    renamed = api["editor"].put(f"{milestones}/{added['id']}", {"name": "End"}, format="json").json()
    assert (renamed["id"], renamed["name"]) == (added["id"], "End")
    strategies = f"{milestones}/{added['id']}/strategies"
    with_one = api["editor"].post(strategies, strategy(10), format="json").json()
    [new] = with_one["strategies"]
    wider = api["editor"].put(f"{strategies}/{new['id']}", strategy(20), format="json").json()
    assert (wider["id"], wider["parameters"]) == (new["id"], {"rollout": "20"})
    assert api["editor"].delete(f"{strategies}/{new['id']}").status_code == 200
    assert api["editor"].delete(f"{milestones}/{added['id']}").status_code == 200
    assert api["editor"].get(f"{GLOBAL}/{made['id']}").json() == made


def titles(milestone: Any) -> list[str]:
    return [strategy["title"] for strategy in milestone["strategies"]]


def test_a_place_moves_milestones_and_strategies(api, shop):
    url = f"{GLOBAL}/{(made := create(api['editor']).json())['id']}"
    some, every = (f"{url}/milestones/{milestone['id']}" for milestone in made["milestones"])
    first = api["editor"].post(f"{url}/milestones", {"name": "First", "sortOrder": 0}, format="json")
    assert first.json()["name"] == "First"
    assert api["editor"].put(some, {"name": "Some", "sortOrder": 2}, format="json").json()["sortOrder"] == 2
    milestones = api["viewer"].get(url).json()["milestones"]
    assert [milestone["name"] for milestone in milestones] == ["First", "All", "Some"]
    body = strategy(1) | {"title": "Few", "sortOrder": 0}
    added = api["editor"].post(f"{every}/strategies", body, format="json").json()
    assert titles(added) == ["Few", None]
    few = added["strategies"][0]["id"]
    moved = api["editor"].put(f"{every}/strategies/{few}", body | {"sortOrder": 9}, format="json").json()
    assert (moved["id"], moved["sortOrder"]) == (few, 1)


def test_templates_of_a_project_are_its_own(api, shop):
    made = create(api["owner"], OWN).json()
    assert made["project"] == "shop"
    create(api["editor"])
    assert len(api["reader"].get(OWN).json()) == 1
    assert len(api["reader"].get(f"{OWN}?include=root").json()) == 2
    refused = api["reader"].get(f"{OWN}?include=all")
    assert (refused.status_code, refused.json()["details"]) == (
        400,
        [{"path": "include", "message": 'must be root or absent, not "all"'}],
    )
    assert api["outsider"].get(OWN).status_code == 404
    assert api["viewer"].get(f"{GLOBAL}/{made['id']}").status_code == 404
    assert api["owner"].post(f"{OWN}/archive/{made['id']}").status_code == 200
    assert api["reader"].get(OWN).json() == []


def test_names_are_unique_among_those_that_are_not_archived(api, shop):
    made = create(api["admin"]).json()
    assert create(api["admin"]).status_code == 409
    assert create(api["owner"], OWN).status_code == 200
    api["admin"].post(f"{GLOBAL}/archive/{made['id']}")
    assert create(api["admin"]).status_code == 200


MALFORMED: list[tuple[dict[str, Any], str]] = [
    ({"milestones": []}, "milestones"),
    (
        {"milestones": [{"name": "a", "strategies": [{"name": "nothing"}]}]},
        "milestones[0].strategies[0].name",
    ),
    ({"milestones": [{"name": "a", "strategies": [{}]}]}, "milestones[0].strategies[0].name"),
    (
        {"milestones": [{"name": "a", "transitionCondition": {"intervalMinutes": 0}}]},
        "milestones[0].transitionCondition.intervalMinutes",
    ),
    ({"milestones": [{"name": "a" * 256}]}, "milestones[0].name"),
    (
        {"milestones": [{"name": "a", "strategies": [strategy(1) | {"segments": [9]}]}]},
        "milestones[0].strategies[0].segments[0]",
    ),
]


@for_each(("members", "path"), MALFORMED)
def test_what_is_malformed_is_named(api, shop, members, path):
    answer = create(api["admin"], **members)
    assert answer.status_code == 400, answer.json()
    assert [problem["path"] for problem in answer.json()["details"]] == [path]


WINDOW = {"zone": "Europe/Oslo", "days": [4, 1, 2, 3], "from": "09:00", "to": "16:00"}


def with_window(**members: Any) -> dict[str, Any]:
    transition = {"window": WINDOW | members}
    return {"milestones": [{"name": "a", "transitionCondition": transition}]}


def test_a_window_is_kept_in_order(api, shop):
    made = create(api["admin"], **with_window()).json()
    window = made["milestones"][0]["transitionCondition"]["window"]
    assert window == WINDOW | {"days": [1, 2, 3, 4]}


@for_each(
    ("member", "value"),
    [("zone", "Mars"), ("zone", "../etc"), ("days", [0]), ("days", []), ("from", "9"), ("to", "08:00")],
)
def test_windows_that_cannot_be_are_refused(api, shop, member, value):
    answer = create(api["admin"], **with_window(**{member: value}))
    [problem] = answer.json()["details"]
    assert problem["path"] == f"milestones[0].transitionCondition.window.{member}"
