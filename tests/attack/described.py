"""Every operation of the API's description with generated requests, valid and not, with each kind of key."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.attack.installation import Installation
from tests.attack.result import Result

CHECKS = "not_a_server_error,status_code_conformance"
SLOWEST = 2  # seconds
# Whoever calls these ends the account or the key that the attack is made with.
SPARED = r"user-admin/\{userId\}|/user/change-password|/user/tokens/"


def attacks(target: Installation, seconds: float, seed: int) -> Iterator[Result]:
    for key in target.keys:
        yield attack(target, key, seconds / len(target.keys), seed)


def attack(target: Installation, key: str, seconds: float, seed: int) -> Result:
    command = [
        str(Path(sys.executable).with_name("schemathesis")), "run", f"{target.url}/api/openapi.json",
        "--header", f"Authorization:{target.keys[key]}", "--checks", CHECKS, "--seed", str(seed),
        "--max-response-time", str(SLOWEST), "--max-time", str(max(int(seconds), 1)), "--request-timeout", "60",
        "--phases", "coverage,fuzzing", "--exclude-path-regex", SPARED, "--warnings", "off", "--no-shrink",
        "--continue-on-failure", "--suppress-health-check", "all", "--generation-database", "none", "--no-color",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    report = target.folder / f"described-{key}.txt"
    report.write_text(output)
    return Result(f"the description, {key} key", done.returncode == 0, summary(output) or output[-200:])


def summary(output: str) -> str:
    """``12,345 generated, 3 found 2 unique failures``: what the tool counted, and the kinds of its failures."""
    told = re.findall(
        r"^\s*(\d[\d,]* generated.*|❌ .*|- (?:Server error|Undocumented|Response time).*)$",
        output,
        re.MULTILINE,
    )
    return "; ".join(dict.fromkeys(line.strip() for line in told))[:400]
