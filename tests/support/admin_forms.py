"""Helpers that fill in and submit the admin site's forms as a browser does."""

from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.contrib.messages import get_messages
from django.test import Client

from tests.support.cast import log_in


@pytest.fixture
def site(people: Any) -> Client:
    """A test client logged in as the user ``admin``."""
    return entered(people["admin"])


def entered(user: Any) -> Client:
    return log_in(Client(), user)


def filled(browser: Client, url: str) -> dict[str, Any]:
    """The fields of the page's form with their initial values."""
    page = browser.get(url)
    assert page.status_code == 200, page.content[:500]
    return shown(page)


def shown(page: Any) -> dict[str, Any]:
    """The fields of a form that was rendered, with the version that it sends."""
    values = {"expected": str(page.context["expected"])} if page.context.get("expected") else {}
    for form in _forms(page):
        for field in form:
            values |= dict(_values(field))
    return {key: value for key, value in values.items() if "__prefix__" not in key}


def _forms(page: Any) -> Iterator[Any]:
    yield page.context["adminform"].form
    for inline in page.context["inline_admin_formsets"]:
        yield inline.formset.management_form
        yield from inline.formset.forms


def _values(field: Any) -> Iterator[tuple[str, Any]]:
    widget, value = field.field.widget, field.value()
    if isinstance(widget, forms.MultiWidget):
        for index, part in enumerate(widget.decompress(value)):
            yield f"{field.html_name}_{index}", "" if part is None else part
    elif value is not None and value is not False:
        yield field.html_name, "on" if value is True else value


def send(browser: Client, url: str, **changes: Any) -> Any:
    """Submits the page's form with these fields changed (None: omitted)."""
    values = filled(browser, url) | {"_save": "Save"} | changes
    return browser.post(url, {key: value for key, value in values.items() if value is not None})


def saved(response: Any) -> Any:
    """Checks that a form was accepted: the site redirects to the list."""
    assert response.status_code == 302, errors_of(response)
    assert not refusals(response), refusals(response)
    return response


def refusals(response: Any) -> list[str]:
    """The error messages of the response."""
    return [str(m) for m in get_messages(response.wsgi_request) if m.level_tag == "error"]


def errors_of(response: Any) -> list[str]:
    """The field errors of a form that was not accepted."""
    assert response.status_code == 200
    return [text for form in _forms(response) for texts in form.errors.values() for text in texts]
