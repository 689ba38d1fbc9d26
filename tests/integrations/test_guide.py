"""The calls of docs/integrations.md work, one after the other."""

import json
from typing import Any

from integrations.models import Delivery, Integration
from tests.documentation.blocks import blocks


def test_its_calls_create_sign_test_and_look_up(api: Any, shop: Any) -> None:
    for block in blocks("docs/integrations.md"):
        text = block.text
        if integration := Integration.objects.first():
            text = text.replace("addons/1", f"addons/{integration.pk}")
        head, _, body = text.partition("\n\n")
        method, path, *_ = head.split()
        answer = getattr(api["admin"], method.lower())(
            path, json.loads(body) if body else None, format="json"
        )
        assert answer.status_code in (200, 201, 202), answer.content
    assert len(Integration.objects.get().secrets()["keys"]) == 1
    assert Delivery.objects.get().event_id is None
