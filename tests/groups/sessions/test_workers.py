"""A session that is ended on one worker of a real server is over on the other one too, at once."""

import json
import subprocess
import sys
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from urllib.parse import urlencode

import pytest

from tests.support.live_server import PATIENCE
from tests.support.serve import environment
from tests.support.served import Served

pytestmark = pytest.mark.processes

CONNECTIONS = 16  # all to the same worker once in 32,768 runs; then less is shown
CSRF = "a" * 32
FILL = """
import json
import django
django.setup()
from allauth.usersessions.models import UserSession
from django.test import Client
from tests.support.cast import make_user
browsers, user = [Client(), Client()], make_user("ada")
for browser in browsers:
    browser.force_login(user)
keys = [browser.session.session_key for browser in browsers]
print(json.dumps([*keys, UserSession.objects.get(session_key=keys[1]).pk]))
"""


def test_an_ended_session_is_over_in_all_workers(served: Served) -> None:
    variables = environment(served.data_dir, DJANGO_SETTINGS_MODULE="flagadmin.settings")
    filled = subprocess.run(
        [sys.executable, "-c", FILL], env=variables, capture_output=True, text=True, check=True
    )
    here, there, row = json.loads(filled.stdout)
    with ExitStack() as stack:
        connections = [
            stack.enter_context(closing(HTTPConnection("127.0.0.1", served.port, timeout=PATIENCE)))
            for _ in range(CONNECTIONS)
        ]
        assert {account(connection, there) for connection in connections} == {200}

        assert end(connections[0], here, row) == 302

        assert {account(connection, there) for connection in connections} == {302}
        assert {account(connection, here) for connection in connections} == {200}


def account(connection: HTTPConnection, session: str) -> int:
    return send(connection, "GET", "/account/", session)


def end(connection: HTTPConnection, session: str, row: int) -> int:
    form = urlencode({"csrfmiddlewaretoken": CSRF})
    return send(connection, "POST", f"/account/sessions/{row}/end", session, form)


def send(connection: HTTPConnection, method: str, path: str, session: str, form: str | None = None) -> int:
    headers = {"Cookie": f"sessionid={session}; csrftoken={CSRF}"}
    if form:
        headers["Content-Type"] = "application/x-www-form-urlencoded"
    connection.request(method, path, form, headers)
    answer = connection.getresponse()
    answer.read()
    return answer.status
