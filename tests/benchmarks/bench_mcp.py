"""What a call of each tool takes beside what it evaluates or reads: at most 100 ms more.

``python -m tests.benchmarks.bench_mcp [FLAGS]`` (default: 1,000 in a project). The floor is the same function called in
this process, without HTTP, login and protocol.
"""

import json
import sys
from typing import Any

from tests.support.live_server import Client, data_directory, median_ms, running

CALLS: dict[str, dict[str, Any]] = {
    "find_flags": {"query": "flag-1"},
    "get_flag": {"flag": "flag-1"},
    "explain_flag": {"flag": "flag-1", "environment": "production", "context": {"userId": "7"}},
    "who_changes": {"flag": "flag-1", "environment": "production", "draft": {"enabled": False}},
    "list_changes": {"project": "default"},
    "find_stale_flags": {},
    "create_flag": {"project": "default", "name": "new"},
    "turn_off_flag": {"flag": "flag-1", "environment": "production"},
    "compare_environments": {"project": "default", "first": "development", "second": "production"},
    "check_expectations": {},
    "connect_sdk": {"language": "python"},
}
LIMIT = 100  # ms


def load(flags: int) -> None:
    from projects.models import FlagEnvironment
    from tests.support.flags import add_strategy, make_flag

    for number in range(flags):
        flag = make_flag(f"flag-{number}", project="default", stale=number % 10 == 0)
        parameters = {"rollout": "50", "stickiness": "userId"}
        add_strategy(flag, "production", "flexibleRollout", parameters=parameters)
    FlagEnvironment.objects.filter(environment="production").update(enabled=True)


def main(flags: int) -> int:
    with data_directory():
        from groups.access import Caller
        from integrations.mcp.api import TOOLS, call_tool
        from integrations.mcp.tool import Call
        from tests.support.cast import make_token, make_user

        load(flags)
        user = make_user("agent", root_role=1)
        secret = make_token("personal", user=user)
        slow = []
        with running(workers=1) as port:
            client = Client(port, secret)

            def ask(name: str) -> None:
                params = {"name": name, "arguments": CALLS[name]}
                body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                status, text = client.call("POST", "/mcp", json.dumps(body).encode())
                assert status == 200, text
                result = json.loads(text)["result"]
                assert not result["isError"], result

            for name in CALLS:
                whole = median_ms(lambda name=name: ask(name))
                floor = median_ms(
                    lambda name=name: call_tool(Call(Caller(user=user), "http://here"), name, CALLS[name])
                )
                print(f"{name:22} {whole:7.1f} ms, without HTTP and login {floor:7.1f} ms")
                if whole - floor > LIMIT:
                    slow.append(name)
        print(
            f"{len(CALLS)} of {len(TOOLS)} tools with {flags:,} flags; over {LIMIT} ms more: {slow or 'none'}"
        )
        return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main(*([int(argument) for argument in sys.argv[1:2]] or [1_000])))
