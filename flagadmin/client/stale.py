"""flagadmin stale: flags that can be removed, each with its proof."""

import json
from argparse import ArgumentParser, Namespace
from typing import Any

from flagadmin.client.report import drop_controls
from flagadmin.client.server import connect

PAGE = 50
MAX_FLAGS = 10_000


def add_stale(parser: ArgumentParser) -> None:
    parser.add_argument("--project", help="only flags of this project")
    parser.add_argument("--all", action="store_true", help="also flags that have to stay for now")
    parser.add_argument("--json", action="store_true", help="print all that is known, as JSON")
    parser.add_argument(
        "--tasks", action="store_true", help="print a task for each flag, for a ticket or an agent"
    )


def list_stale(options: Namespace) -> int:
    server = connect(options.url, options.token)
    flags: list[dict[str, Any]] = []
    query = [("project", options.project)] if options.project else []
    for offset in range(0, MAX_FLAGS, PAGE):
        answer = server.get("/api/admin/stale-flags", [*query, ("limit", str(PAGE)), ("offset", str(offset))])
        flags += answer["flags"]
        if len(flags) >= answer["total"] or not answer["flags"]:
            break
    listed = [flag for flag in flags if options.all or flag["canLeaveTheCode"]]
    if options.json:
        print(json.dumps(listed, indent=2))
        return 0
    for flag in listed:
        for line in flag["task"].splitlines() if options.tasks else _describe(flag):
            print(drop_controls(line))
        print()
    number = sum(flag["canLeaveTheCode"] for flag in flags)
    print(f"{number:,} of {len(flags):,} flags that are past their time can leave the code.")
    return 0


def _describe(flag: dict[str, Any]) -> list[str]:
    keep, seen = flag["keep"], max(flag["lastEvaluated"].values(), default="never")
    lines = [f"{flag['name']} in {flag['project']}: {', '.join(flag['why'])}"]
    if keep and flag["canLeaveTheCode"]:
        lines.append(f"    keep: {keep['variant'] or ('on' if keep['isEnabled'] else 'off')}")
    gets = ", ".join(f"{name}: {words}" for name, words in flag["everybodyGets"].items())
    lines += [f"    everybody gets: {gets}", f"    not changed for {flag['unchangedDays']:,} days"]
    lines.append(f"    last evaluated: {seen}")
    if flag["dependents"]:
        lines.append(f"    depend on it: {', '.join(flag['dependents'][:10])}")
    return lines
