"""The requests of docs/api.md, in their order, against the demo's data: each answers what is written below it."""

import json
import re
import shlex
import sys
import urllib.request
from io import BytesIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from flagadmin.demo.load import create_key
from groups.access import Caller
from groups.models import Group
from importer.api import Selection, export_selection
from tests.support.demo import loaded_demo
from tests.support.shown_answers import contains

__all__ = ["loaded_demo"]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
EXAMPLE = re.compile(r"```sh\n(curl .*?)```\n\n(\d{3})(?:, without a body|:\n\n```json\n(.*?)```)", re.DOTALL)


def request_of(command):
    """The method, path and body of a curl command."""
    words = iter(shlex.split(command.replace("\\\n", " "))[1:])
    method, path, body = "", "", None
    for word in words:
        if word == "-X":
            method = next(words)
        elif word == "-d":
            body = next(words)
        elif word == "-H":
            next(words)
        else:
            path = word.removeprefix("$URL")
    return method or ("GET" if body is None else "POST"), path, body


def test_every_example_answers_what_the_guide_says(demo_key):
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=demo_key)
    # The demo of a new installation gives the group this id; here, other tests have taken it.
    group = Group.objects.get(name="Checkout team").pk
    text = GUIDE.read_text().replace("/groups/1\n", f"/groups/{group}\n")
    examples = EXAMPLE.findall(text)
    assert len(examples) == text.count("```sh\ncurl") == 13
    for command, status, shown in examples:
        method, path, body = request_of(command)
        response = client.generic(method, path, body or "", "application/json" if body else "")
        assert response.status_code == int(status), (command, response.content)
        if shown:
            assert contains(response.json(), json.loads(shown)), (command, response.json())
        else:
            assert response.content == b""


@pytest.fixture
def demo_key(loaded_demo, db):
    return create_key(loaded_demo, timezone.now())


@pytest.fixture
def call(demo_key):
    """`urllib.request.urlopen` for requests to the demo."""
    client = APIClient()

    def urlopen(request):
        assert request.full_url.startswith("http://demo/")
        header = request.get_header("Authorization")
        response = client.generic(
            "POST", request.selector, request.data, "application/json", HTTP_AUTHORIZATION=header
        )
        assert response.status_code == 200, response.content
        return BytesIO(response.content)

    return urlopen


@pytest.mark.parametrize(("percent", "fails"), [("10", False), ("30", True)])
def test_the_check_for_a_pipeline(call, demo_key, percent, fails, tmp_path, monkeypatch, capsys):
    """checkout-redesign is on for 10 % of all users; more of it is a change for them, in Germany as elsewhere."""
    [script] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    file = tmp_path / "export.json"
    file.write_text(json.dumps(changed_export(percent)))
    monkeypatch.setenv("URL", "http://demo")
    monkeypatch.setenv("TOKEN", demo_key)
    monkeypatch.setattr(sys, "argv", ["check.py", str(file)])
    monkeypatch.setattr(urllib.request, "urlopen", call)
    with pytest.raises(SystemExit) as ended:
        exec(script, {})
    assert ended.value.code is fails
    assert capsys.readouterr().out.endswith("of 10000 German users change\n")
    of_the_guide = re.search(
        r"manage.py (check_expectations --as-if-imported .*?)```", GUIDE.read_text(), re.DOTALL
    )
    monkeypatch.chdir(tmp_path)
    name, *arguments = shlex.split(of_the_guide[1].replace("\\\n", " "))
    status = 0
    try:
        call_command(name, *arguments)
    except CommandError as error:
        status = error.returncode
    assert status == fails


def changed_export(percent):
    selection = Selection(environment="production", project="checkout")
    document = json.loads(json.dumps(export_selection(selection, caller=Caller.system()), default=str))
    [strategy] = [
        each for each in document["featureStrategies"] if each["featureName"] == "checkout-redesign"
    ]
    strategy["parameters"]["rollout"] = percent
    return document


@pytest.mark.parametrize(
    ("answer", "shown"),
    [({}, {"a": 1}), ([1], []), ([1, 2], [2, 1]), (1, True), ({"a": [{"b": 1}]}, {"a": [{"b": 2}]})],
)
def test_the_comparison_refuses_what_is_not_there(answer, shown):
    assert not contains(answer, shown)
