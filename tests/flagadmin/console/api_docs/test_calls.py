"""The curl commands and Python programs of the operations' pages, run against a server."""

import os
import re
import subprocess
import sys
from html import unescape

import pytest
from django.test import Client

from flagadmin.console.api_docs.operations import Call, as_curl, as_python, fill_path, make_path_value
from projects.models import Flag, TagType
from tests.support.cast import make_token
from tests.support.flags import make_flag

SAMPLE = (
    ("getProjects", "200"),
    ("createFeature", "201"),
    ("getFeature", "200"),
    ("patchFeature", "200"),
    ("updateTagType", "200"),
    ("archiveFeature", "202"),
    ("getAllClientFeatures", "403"),  # the token is another one than the page says
)


def example(server: str, operation_id: str, element: str) -> str:
    client = Client(HTTP_HOST=server.removeprefix("http://"))
    text = client.get(f"/api/docs/{operation_id}/").text
    [code] = re.findall(rf'<code id="{element}">(.*?)</code>', text, re.DOTALL)
    return unescape(code)


@pytest.fixture
def environment(transactional_db: None) -> dict[str, str]:
    make_flag("new-checkout", "default")
    return dict(os.environ) | {"TOKEN": make_token("admin")}


@pytest.mark.processes
@pytest.mark.parametrize(("operation_id", "status"), SAMPLE)
def test_curl(live_server, environment: dict[str, str], operation_id: str, status: str) -> None:
    if operation_id == "createFeature":
        Flag.objects.all().delete()
    command = example(live_server.url, operation_id, "curl")
    assert live_server.url in command
    run = subprocess.run(
        ["sh", "-c", f"{command} -s -o /dev/null -w '%{{http_code}}'"],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert run.stdout == status


@pytest.mark.processes
@pytest.mark.parametrize("operation_id", ["getProjects", "createTagType", "patchFeature"])
def test_python(live_server, environment: dict[str, str], operation_id: str) -> None:
    program = example(live_server.url, operation_id, "python")
    subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, check=True)
    if operation_id == "createTagType":
        assert TagType.objects.filter(name="new-checkout").exists()


def test_a_command_is_quoted_for_the_shell() -> None:
    call = Call("PUT", "http://h/a?b=c&d='", "application/json", {"a": "it's"})
    command = as_curl(call)
    words = subprocess.run(
        ["sh", "-c", command.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True,
        env={"TOKEN": "t"},
    ).stdout.splitlines()  # fmt: skip
    assert words == [
        "-X", "PUT", "-H", "Authorization: t", "-H", "Content-Type: application/json", "http://h/a?b=c&d='",
        "-d", "{", '  "a": "it\'s"', "}",
    ]  # fmt: skip


def test_a_file_is_sent_as_it_is() -> None:
    call = Call("POST", "http://h/a", "text/csv", None, "")
    assert "--data-binary @users.csv" in as_curl(call)
    assert 'data=open("users.csv", "rb").read()' in as_python(call)
    assert "TOKEN" not in as_curl(call) + as_python(call)


def test_values_in_python_are_those_of_the_body() -> None:
    body = {"a": [True, None, 1.5, {}, []], 'q"': "x\ny"}
    program = as_python(Call("POST", "http://h/", "application/json", body))
    names: dict[str, object] = {}
    exec(program.partition("\nrequest =")[0], names)
    assert names["body"] == body


def test_a_path_is_filled_and_quoted() -> None:
    parameters = [
        {"name": "name", "in": "path", "required": True},
        {"name": "token", "in": "query", "required": True},
        {"name": "limit", "in": "query"},
    ]
    assert fill_path("/api/admin/tag-types/{name}", parameters) == "/api/admin/tag-types/simple?token=1"
    assert make_path_value("/api/admin/projects/{projectId}/features/{name}", "name") == "new-checkout"
