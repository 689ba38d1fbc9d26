"""The calls of docs/integrations.md work, one after the other."""

import json
from typing import Any

from integrations.attempts import make_test_event
from integrations.messages import Message
from integrations.models import Delivery, Integration
from integrations.outgoing import make_webhook
from tests.documentation.blocks import blocks


def test_its_calls_create_sign_test_and_look_up(api: Any, shop: Any) -> None:
    for block in blocks("docs/integrations.md"):
        text = block.text
        if integration := Integration.objects.order_by("id").first():
            text = text.replace("addons/1", f"addons/{integration.pk}")
        head, _, body = text.partition("\n\n")
        method, path, *_ = head.split()
        answer = getattr(api["admin"], method.lower())(
            path, json.loads(body) if body else None, format="json"
        )
        assert answer.status_code in (200, 201, 202), answer.content
    first, on_call = Integration.objects.order_by("id")
    assert len(first.secrets()["keys"]) == 1
    body = json.loads(
        make_webhook(on_call.parameters | on_call.secrets()["parameters"], Message(make_test_event())).bodies[
            ""
        ]
    )
    assert body["payload"]["summary"] == "flagadmin: integration-test "
    assert json.loads(body["payload"]["custom_details"])["type"] == "integration-test"
    assert Delivery.objects.get().event_id is None
