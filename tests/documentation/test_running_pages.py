"""Pages are followed as a reader would: each block is run, in order, against a served demo, and prints what the page shows."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.documentation.blocks import MARK, Step, steps, write_script
from tests.documentation.not_run import AFTER, BEFORE, ELSEWHERE, NOT_RUN, RUN
from tests.support.live_server import PATIENCE, running
from tests.support.node_packages import installed
from tests.support.paths import ROOT
from tests.support.programs import program
from tests.support.shown_answers import contains

pytestmark = [pytest.mark.processes, pytest.mark.exhaustive]

# The server's, as the pages have it.
ADDRESS = re.compile(r"http://127\.0\.0\.1:8000|https://flags\.example\.(?:org|com)")


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, install: Callable[[Path], None]
) -> Iterator[dict[str, str]]:
    """The variables that a reader has after `make demo`."""
    folder = tmp_path_factory.mktemp("demo")
    install(folder)
    data = {
        "DJANGO_SETTINGS_MODULE": "flagadmin.settings",
        "FLAGADMIN_DATA_DIR": str(folder),
        "FLAGADMIN_DATABASE_DURABLE": "0",
        "FLAGADMIN_LOG_LEVEL": "WARNING",
    }
    demo = [sys.executable, "manage.py", "demo", "--no-serve"]
    printed = subprocess.run(
        demo, cwd=ROOT, env=os.environ | data, capture_output=True, text=True, check=True
    )
    token = printed.stdout.split("API token")[1].split()[0]
    with running(**data) as port:
        yield data | {"URL": f"http://127.0.0.1:{port}", "TOKEN": token}


@pytest.mark.parametrize("page", RUN)
def test_every_block_prints_what_the_page_shows(page: str, served: dict[str, str], tmp_path: Path) -> None:
    run = steps(page, {first_line for name, first_line in ELSEWHERE | NOT_RUN if name == page})
    assert run
    environment = os.environ | served | {"PAGE": str(tmp_path), "PYTHON": sys.executable}
    environment |= {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}  # SDKs keep backups in TMPDIR
    if any(step.block.language == "js" for step in run):
        environment["NODE"] = program("node")
        installed("unleash-client"), installed("openfeature")
    ends = {first_line: text for (name, first_line), text in AFTER.items() if name == page}
    script = write_script(run, tmp_path, BEFORE.get(page, ""), ends)
    for file in tmp_path.iterdir():  # the script and its programs
        file.write_text(ADDRESS.sub(served["URL"], file.read_text()))
    done = subprocess.run(
        [program("bash"), script],
        cwd=checkout(tmp_path / "checkout"),
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    printed = read_outputs(done.stdout)
    assert done.returncode == 0, f"{run[len(printed) - 1].block}\n{printed[-1]}\n{done.stderr}"
    for step, output in zip(run, printed, strict=True):
        check_output(step, output)


def checkout(folder: Path) -> Path:
    """A folder with the same files as the checkout, in which pages leave their own."""
    folder.mkdir()
    for path in ROOT.iterdir():
        (folder / path.name).symlink_to(path)
    return folder


def read_outputs(stdout: str) -> list[str]:
    return [part.split("\n", 1)[1].strip() for part in stdout.split(f"\n{MARK} ")[1:]]


def check_output(step: Step, output: str) -> None:
    if step.shown is None:
        return
    if step.shown.language == "json":
        shown, answer = json.loads(step.shown.text), json.loads(output)
        assert contains(answer, shown), f"{step.shown} is not in\n{output}"
    else:
        assert output == step.shown.text.strip(), f"{step.block}"
