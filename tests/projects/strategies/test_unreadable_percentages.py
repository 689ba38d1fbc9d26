"""Percentages that SDKs cannot read: refused where a person writes them, named where a file or a server brings them."""

import json
from typing import Any

from playground.engine.strategy_types import STRATEGY_TYPES
from projects.flags.lists.strategy_lines import calculate_share
from projects.models import ProjectEnvironment, Strategy
from projects.strategies.sentences import summarize_strategy
from tests.support.as_code import FLAG
from tests.support.flags import add_strategy, make_flag
from tests.support.import_bodies import body, strategy
from tests.support.page_text import page_text

ODD = ("150", "abc", "-5", "33.5", "1e2", " 50 ", "100%", "٥٠", "")
READ = ("0", "7", "+50", "050", "100", 50)
STRATEGIES = "/api/admin/projects/shop/features/cart/environments/development/strategies"
DEFAULT = "/api/admin/projects/shop/environments/development/default-strategy"
TEMPLATES = "/api/admin/release-plan-templates"
AS_CODE = "/api/admin/flags-as-code/apply"
IMPORT = "/api/admin/features-batch/import"
VALIDATE = "/api/admin/features-batch/validate"
REQUESTS = "/api/admin/projects/shop/environments/development/change-requests"


def rollout(text: Any) -> dict[str, Any]:
    return {"name": "flexibleRollout", "parameters": {"rollout": text}}


def in_template(text: Any) -> dict[str, Any]:
    return {"name": "Slow", "milestones": [{"name": "First", "strategies": [rollout(text)]}]}


def as_code(text: Any) -> dict[str, Any]:
    states = {"development": {"enabled": True, "strategies": [rollout(text)]}}
    return {"flags": [{"project": "shop", "flag": {**FLAG, "name": "cart", "environments": states}}]}


def proposed(text: Any) -> list[dict[str, Any]]:
    return [{"feature": "cart", "action": "addStrategy", "payload": rollout(text)}]


def test_whatever_a_person_writes_is_refused_everywhere_with_its_place(api: Any, shop: Any) -> None:
    flag = make_flag("cart")
    stored = add_strategy(flag, **rollout("50"))
    accepted = []
    for text in ODD:
        for method, path, sent in (
            ("post", STRATEGIES, rollout(text)),
            ("put", f"{STRATEGIES}/{stored.pk}", rollout(text)),
            ("post", DEFAULT, rollout(text)),
            ("post", TEMPLATES, in_template(text)),
            ("post", AS_CODE, as_code(text)),
            ("post", REQUESTS, proposed(text)),
        ):
            answer = getattr(api["admin"], method)(path, sent, format="json")
            if (
                answer.status_code != 400
                or "parameters.rollout" not in answer.text
                or "0 to 100" not in answer.text
            ):
                accepted.append((text, path, answer.status_code, answer.text[:200]))
    assert accepted == []
    assert [each.parameters for each in Strategy.objects.all()] == [stored.parameters]


def test_what_sdks_read_is_stored(api: Any, shop: Any) -> None:
    make_flag("cart")
    for text in READ:
        assert api["admin"].post(STRATEGIES, rollout(text), format="json").status_code == 200, text


def test_a_stored_one_can_be_sent_back_with_a_warning(api: Any, shop: Any) -> None:
    stored = add_strategy(make_flag("cart"), **rollout("33.5"))

    answer = api["admin"].put(
        f"{STRATEGIES}/{stored.pk}", {**rollout("33.5"), "title": "A third"}, format="json"
    )

    assert answer.status_code == 200, answer.text
    [warning] = json.loads(answer.headers["X-Unreadable-Values"])
    assert warning["message"].startswith(
        "SDKs read the percentage 33.5 as 0, so the strategy is on for nobody"
    )
    stored.refresh_from_db()
    assert (stored.title, stored.parameters["rollout"]) == ("A third", "33.5")


def test_an_import_takes_it_unchanged_and_says_what_users_get(api: Any, shop: Any) -> None:
    for text in ODD:
        document = body("cart", featureStrategies=[strategy("cart", parameters={"rollout": text})])
        validation = api["admin"].post(VALIDATE, document, format="json").json()
        assert validation["errors"] == [], text
        [note] = validation["warnings"][-1]["affectedItems"]
        gets = "the flag is off for everyone" if text == "150" else "the strategy is on for nobody"
        assert gets in note, text
        assert "data.featureStrategies[0].parameters.rollout" in note, text
        assert api["admin"].post(IMPORT, document, format="json").status_code == 200
        assert Strategy.objects.get(flag__name="cart").parameters["rollout"] == text


def test_flags_as_code_can_be_applied_as_they_were_pulled(api: Any, shop: Any) -> None:
    document = body("cart", featureStrategies=[strategy("cart", parameters={"rollout": "33.5"})])
    api["admin"].post(IMPORT, document, format="json")
    read = api["admin"].get("/api/admin/flags-as-code", {"project": "shop"}).json()
    [entry] = read["flags"]
    changed = {"flags": [{**entry, "flag": {**entry["flag"], "description": "New"}}]}

    assert api["admin"].post(AS_CODE, changed, format="json").status_code == 200


def test_turning_on_with_a_default_strategy_from_elsewhere_warns(api: Any, shop: Any) -> None:
    make_flag("cart")
    ProjectEnvironment.objects.filter(project="shop", environment="development").update(
        default_strategy={**rollout("150"), "constraints": [], "segments": []}
    )

    answer = api["admin"].post(f"{STRATEGIES.rpartition('/')[0]}/on")

    assert answer.status_code == 200, answer.text
    assert "off for everyone" in answer.headers["X-Unreadable-Values"]


def test_a_new_flag_is_rolled_out_to_whole_percentages_only(browse: Any, shop: Any) -> None:
    entered = {"name": "cart", "type": "release", "environment": "development", "rollout": "33.5"}

    refused = browse("owner").post("/projects/shop/features/new", entered)

    assert refused.status_code == 400
    assert "Enter a whole number" in page_text(refused)


def test_lists_sentences_and_evaluation_read_them_alike(shop: Any) -> None:
    flag = make_flag("cart")
    read_unlike = []
    for name, kind in STRATEGY_TYPES.items():
        for text in (*ODD, *map(str, READ), "101", "9" * 19):
            parameters = {kind.percentage: text, "groupId": "g"} if kind.percentage else {}
            stored = add_strategy(flag, name=name, parameters=parameters)
            stored.refresh_from_db()
            share = calculate_share(name, parameters)
            if stored.share != share:
                read_unlike.append((name, text, stored.share, share))
            sentence = str(summarize_strategy({"name": name, "parameters": parameters}, segments={}))
            if kind.percentage and text != "0" and (share == 0) != ("nobody" in sentence):
                read_unlike.append((name, text, sentence))
    assert read_unlike == []
