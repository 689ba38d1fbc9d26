"""With two servers on one database, a change on one affects the next response of the other."""

import json
import os
import subprocess
import sys
from contextlib import closing

import pytest

from tests.support.live_server import PATIENCE, PATIENT, Client, running

pytestmark = pytest.mark.processes

FILL = """
import os, django
django.setup()
from django.utils import timezone
from projects.models import Flag, FlagEnvironment
from tests.support.cast import make_token
flag = Flag.objects.create(name="shared", project_id="default", created_at=timezone.now())
FlagEnvironment.objects.create(flag=flag, environment_id="production", enabled=False)
print(make_token("admin"))
"""
ASK = {"environment": "production", "context": {}}
SWITCH = "/api/admin/projects/default/features/shared/environments/production/"


@pytest.fixture(scope="module")
def environment(tmp_path_factory, install):
    folder = tmp_path_factory.mktemp("two")
    install(folder)
    return {
        "FLAGADMIN_DATA_DIR": str(folder),
        "FLAGADMIN_DATABASE_DURABLE": "0",
        "FLAGADMIN_LOG_LEVEL": "ERROR",
    }


@pytest.fixture(scope="module")
def secret(environment):
    variables = os.environ | PATIENT | environment | {"DJANGO_SETTINGS_MODULE": "flagadmin.settings"}
    filled = subprocess.run(
        [sys.executable, "-c", FILL],
        env=variables,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    return filled.stdout.strip().splitlines()[-1]


def shared_flag(client):
    status, answer = client.call("POST", "/api/admin/playground", ASK)
    assert status == 200, answer
    [flag] = json.loads(answer)["features"]
    return flag["isEnabled"]


def test_a_change_in_one_server_is_the_others_next_answer(environment, secret):
    variables = environment | {"DJANGO_SETTINGS_MODULE": "flagadmin.settings"}
    with (
        running(**variables) as first,
        running(workers=2, **variables) as second,
        closing(Client(first, secret)) as writer,
        closing(Client(second, secret)) as reader,
    ):
        assert shared_flag(reader) is False
        for state in (True, False, True):
            status, answer = writer.call("POST", SWITCH + ("on" if state else "off"), {})
            assert status == 200, answer
            for _ in range(6):  # whichever of the two workers answers
                assert shared_flag(reader) is state
