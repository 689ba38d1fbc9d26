"""Request and response bodies are freed after each request, without the garbage collector."""

import gc
import json
import weakref

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.test import RequestFactory

from playground.api import PlaygroundViewSet
from tests.support.cast import make_token


@pytest.fixture
def kept(monkeypatch):
    """The views that were asked, as long as anything holds them."""
    views = weakref.WeakSet()
    initial = PlaygroundViewSet.initial

    def noted(view, *args, **kwargs):
        views.add(view)
        return initial(view, *args, **kwargs)

    monkeypatch.setattr(PlaygroundViewSet, "initial", noted)
    return views


@pytest.mark.parametrize(("environment", "status"), [("production", 200), ("nowhere", 400)])
def test_nothing_waits_for_the_collector(shop, kept, environment, status):
    key = make_token("admin")
    question = json.dumps({"environment": environment, "context": {}})
    handler = WSGIHandler()

    gc.collect()
    gc.disable()
    try:
        request = RequestFactory().post(
            "/api/admin/playground", question, content_type="application/json", headers={"Authorization": key}
        )
        response = handler.get_response(request)
        assert (response.status_code, len(kept)) == (status, 0)
        answer = weakref.ref(response)
        del request, response
        assert answer() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("backend", "/api/client/features"),
        ("backend", "/api/client/delta"),
        ("frontend", "/api/frontend"),
    ],
)
def test_nor_does_an_answer_that_drf_does_not_render(shop, kind, path):
    key = make_token(kind, environment="production")
    handler = WSGIHandler()

    gc.collect()
    gc.disable()
    try:
        response = handler.get_response(RequestFactory().get(path, headers={"Authorization": key}))
        assert response.status_code == 200
        answer = weakref.ref(response)
        del response
        assert answer() is None
    finally:
        gc.enable()
