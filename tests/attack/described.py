"""Every operation of the API's description with generated requests, valid and not, with each kind of key."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tests.attack.installation import Installation, installation
from tests.attack.result import Result
from tests.support.live_server import Client

CHECKS = "not_a_server_error,status_code_conformance"
SLOWEST = 2  # seconds
KEYS = ("admin", "viewer", "backend", "frontend")
# Whoever calls these ends accounts and keys that the attacks are made with: they have an installation of their own.
OWN = r"user-admin/\{userId\}|/user/change-password|/user/tokens"


def attacks(target: Installation, seconds: float, seed: int) -> Iterator[Result]:
    each = seconds / (len(KEYS) + 0.5)
    for key in KEYS:
        found = attack(target, key, each, seed, "--exclude-path-regex", OWN)
        yield Result(f"the description, {key} key", *found)
    with installation(workers=1) as throwaway:
        held, figures = attack(throwaway, "admin", each / 2, seed, "--include-path-regex", OWN)
        with closing(Client(throwaway.port, throwaway.keys["admin"])) as client:
            status, _ = client.call("GET", "/api/admin/user")
        yield Result(
            "people and own keys, admin key", held, f"{figures}; the key is answered {status} after it"
        )


def attack(target: Installation, key: str, seconds: float, seed: int, *paths: str) -> tuple[bool, str]:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{target.url}/api/openapi.json",
        "--header", f"Authorization:{target.keys[key]}", "--checks", CHECKS, "--seed", str(seed),
        "--max-response-time", str(SLOWEST), "--max-time", str(max(int(seconds), 1)), "--request-timeout", "60",
        "--phases", "coverage,fuzzing", *paths, "--warnings", "off", "--no-shrink",
        "--continue-on-failure", "--suppress-health-check", "all", "--generation-database", "none", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    report = target.folder / f"described-{key}.txt"
    report.write_text(output)
    return done.returncode == 0, summary(output) or output[-200:]


def summary(output: str) -> str:
    """``12,345 generated, 3 found 2 unique failures``: what the tool counted, and the kinds of its failures."""
    told = re.findall(
        r"^\s*(\d[\d,]* generated.*|❌ .*|- (?:Server error|Undocumented|Response time).*)$",
        output,
        re.MULTILINE,
    )
    return "; ".join(dict.fromkeys(line.strip() for line in told))[:400]
