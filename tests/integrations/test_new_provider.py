"""The provider of docs/contributing.md is one module: pages, forms, the API, its document and deliveries know it."""

import re

import pytest

from integrations import providers
from integrations.addons.api import AddonBody
from integrations.models import Integration
from tests.documentation.blocks import blocks
from tests.support.page_text import page_text
from tests.support.receiver import deliver, receiver

__all__ = ["receiver"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _pager(tmp_path, monkeypatch):
    [text] = [block.text for block in blocks("docs/contributing.md") if "PAGER = " in block.text]
    (tmp_path / "pager.py").write_text(text)
    monkeypatch.setattr(providers, "__path__", [*providers.__path__, str(tmp_path)])
    monkeypatch.setitem(providers.PROVIDERS, "pager", providers.find_providers()["pager"])


def test_a_module_is_a_provider_everywhere(api, browse, receiver, shop):
    admin = browse("admin")
    assert "Pager Wakes somebody up." in re.sub(r"\s+", " ", page_text(admin.get("/integrations/")))
    form = admin.get("/integrations/new/pager").text
    assert all(text in form for text in ("New integration: Pager", "Pager URL", "Kept secret.", "Its name."))
    sent = {"enabled": "on", "parameter_url": "nowhere", "parameter_service": "web"}
    refused = admin.post("/integrations/new/pager", sent | {"events_flags": "feature-created"})
    assert list(refused.context["form"].errors) == ["parameter_url"]
    sent |= {"parameter_url": f"{receiver.url}/pager", "events_flags": "feature-created"}
    assert admin.post("/integrations/new/pager", sent).status_code == 302

    integration = Integration.objects.get()
    assert (integration.parameters, integration.projects) == ({"service": "web"}, [])
    assert f"Pager {integration.pk}" in page_text(admin.get("/integrations/"))
    [record] = [
        each for each in api["admin"].get("/api/admin/addons").json()["providers"] if each["name"] == "pager"
    ]
    assert [parameter["displayName"] for parameter in record["parameters"]] == ["Pager URL", "Service"]
    problem = (
        api["admin"].post("/api/admin/addons", {"provider": "nope", "parameters": {}, "events": []}).text
    )
    assert "pager" in problem
    assert "pager" in str(AddonBody().fields["provider"].help_text)

    api["admin"].post("/api/admin/projects/shop/features", {"name": "cart"})
    deliver()
    [got] = receiver.got
    assert got.json()["service"] == "web"
    assert "created" in got.json()["text"]
    log = page_text(admin.get(f"/integrations/{integration.pk}/deliveries/"))
    assert "Pager message was successful with status code: 200." in log
