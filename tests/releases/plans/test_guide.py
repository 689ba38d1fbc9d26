"""The calls of docs/release-plans.md work, one after the other."""

import json
from typing import Any

from releases.models import ReleasePlan
from tests.documentation.blocks import blocks
from tests.support.playground import live_flag


def test_its_calls_make_start_and_guard_a_plan(api: Any, shop: Any) -> None:
    live_flag("checkout-redesign", strategies=[])
    for block in blocks("docs/release-plans.md"):
        text = block.text.replace("projects/checkout", "projects/shop")
        if plan := ReleasePlan.objects.first():
            milestone = plan.milestones.all()[0]
            names = {"PLAN": plan.pk, "MILESTONE": milestone.pk, "STRATEGY": milestone.strategies[0]["id"]}
            for name, key in names.items():
                text = text.replace(name, key)
        head, _, body = text.partition("\n\n")
        method, path, *_ = head.split(" ")
        who = "admin" if path.startswith("/api/admin/impact-metrics") else "owner"
        answer = getattr(api[who], method.lower())(path, json.loads(body or "null"), format="json")
        assert answer.status_code in (200, 204), answer.content
    plan = ReleasePlan.objects.get()
    assert (plan.state, plan.active and plan.active.name) == ("running", "5 %")
    assert str(plan.safeguards.get()) == "Failed payments"
