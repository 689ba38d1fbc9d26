"""The calls of docs/releases.md work, one after the other."""

import json
from typing import Any

from projects.models import ProjectEnvironment
from releases.models import ChangeRequest
from tests.documentation.blocks import blocks
from tests.support.playground import live_flag


def test_its_calls_ask_for_requests_propose_send_and_schedule(api: Any, shop: Any) -> None:
    live_flag("checkout-redesign", strategies=[{"name": "default"}])
    for block in blocks("docs/releases.md"):
        text = block.text.replace("projects/checkout", "projects/shop")
        if request := ChangeRequest.objects.first():
            text = text.replace("/12/", f"/{request.pk}/")
        head, _, body = text.partition("\n\n")
        method, path, *_ = head.split(" ")
        who = "owner"
        if '"Scheduled"' in body:
            who = "admin"
            api[who].put(path, {"state": "Approved"}, format="json")
        answer = getattr(api[who], method.lower())(path, json.loads(body), format="json")
        assert answer.status_code in (200, 204), answer.content
    assert ProjectEnvironment.objects.get(project="shop", environment="production").required_approvals == 1
    request = ChangeRequest.objects.get()
    assert (request.state, request.changes.get().action) == ("Scheduled", "addStrategy")
