"""With two servers on one database, a change on one affects the next response of the other."""

import json
from contextlib import closing

import pytest

from tests.support.live_server import Client, reserved_port
from tests.support.serve import serve, wait_until_it_answers
from tests.support.served import ADMIN, VARIABLES, Served

pytestmark = pytest.mark.processes

ASK = {"environment": "production", "context": {}}
SWITCH = "/api/admin/projects/default/features/shared/environments/production/"


def shared_flag(client: Client) -> bool:
    status, answer = client.call("POST", "/api/admin/playground", ASK)
    assert status == 200, answer
    [flag] = json.loads(answer)["features"]
    is_enabled: bool = flag["isEnabled"]
    return is_enabled


def test_a_change_in_one_server_is_the_others_next_answer(served: Served) -> None:
    served.flag("shared")
    with reserved_port() as port, serve(served.data_dir, port, workers=1, **VARIABLES) as first:
        wait_until_it_answers(port, first)
        with closing(Client(port, ADMIN)) as writer, closing(Client(served.port, ADMIN)) as reader:
            assert shared_flag(reader) is False
            for state in (True, False, True):
                status, answer = writer.call("POST", SWITCH + ("on" if state else "off"), {})
                assert status == 200, answer
                for _ in range(6):  # whichever of the two workers answers
                    assert shared_flag(reader) is state
        first.terminate()
        first.communicate()
