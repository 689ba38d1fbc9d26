"""The page that creates tokens for agents."""

from typing import Any

import pytest

from groups.models import User
from integrations.mcp import pages
from tests.support.page_text import page_text


def test_it_says_that_more_service_accounts_exist_than_it_lists(
    browse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "MAX_OPTIONS", 2)
    more = "Only the first 2 service accounts are listed. Create a token for another one on its own page."
    User.objects.filter(is_service=True).delete()
    for number in range(2):
        User.objects.create(username=f"bot-{number}", is_service=True)
    admin = browse("admin")
    assert more not in page_text(admin.get("/access/agents/"))

    User.objects.create(username="bot-2", is_service=True)
    text = page_text(admin.get("/access/agents/"))
    assert more in text
    assert "bot-1 (service account)" in text
    assert "bot-2 (service account)" not in text
