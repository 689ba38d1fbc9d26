"""The official client for Node lists and calls every tool, over HTTP."""

import json
import subprocess
from typing import Any

import pytest

from groups.models import User
from integrations.mcp.api import TOOLS
from projects.models import Flag
from tests.integrations.mcp.examples import EXAMPLES, cart
from tests.support.cast import make_token
from tests.support.node_packages import installed
from tests.support.programs import program

__all__ = ["cart"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]


@pytest.fixture
def talk(transactional_db: None, live_server: Any, cart: Flag) -> Any:
    """Returns what the client got: ``{server, tools, answers}``."""

    def talk(user: User, examples: Any) -> Any:
        done = subprocess.run(
            [
                program("node"),
                "call.mjs",
                f"{live_server.url}/mcp",
                make_token("personal", user=user),
            ],
            cwd=installed("mcp"),
            input=json.dumps(examples),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return talk


def test_it_lists_and_calls_every_tool(talk: Any, people: dict[str, User]) -> None:
    got = talk(people["owner"], EXAMPLES)
    assert got["server"]["name"] == "flagadmin"
    assert [tool["name"] for tool in got["tools"]] == list(TOOLS)
    for name, answer in got["answers"].items():
        # The flag of the examples has no release plan.
        assert bool(answer.get("isError")) == (name == "step_release_plan"), answer
        assert json.loads(answer["content"][0]["text"]), name
    assert not Flag.objects.filter(name="new-cart").exists()
