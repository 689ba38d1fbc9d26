"""Moves from a recorded Unleash whose answers a test has changed."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from django.core.management import CommandError, call_command

from tests.support.delivering import use_database
from tests.support.generated_unleash import make_request
from tests.support.recorded_unleash import ADMIN, EXPORT, Recording, replayed


def run_changed(
    recording: Recording,
    capsys: Any,
    change: Callable[[dict[str, Any], Recording], Any],
    *options: str,
    steps: Sequence[str] = ("apply",),
) -> Any:
    """Runs the steps after ``change`` has had the answers by path, and the recording.

    Exports are at ``ENVIRONMENT PROJECT``. Returns exit status and text of each step, or of the one.
    """
    recording = deepcopy(recording)
    answers: dict[str, Any] = {}
    for each in recording["requests"]:
        if each["token"] == "admin":
            key = each["path"]
            if key == EXPORT:
                key = f"{each['body']['environment']} {each['answer']['features'][0]['project']}"
            answers[key] = each["answer"]
    change(answers, recording)
    with replayed(recording) as replay:
        results = [run_step(step, replay.address, capsys, *options) for step in steps]
    return results if len(steps) > 1 else results[0]


def run_step(step: str, address: str, capsys: Any, *options: str) -> tuple[object, str]:
    """Exit status and what was printed."""
    status: object = 0
    message = ""
    try:
        call_command("move", step, "--from", address, "--token", ADMIN, *options)
    except CommandError as error:
        status, message = error.returncode, str(error)
    except SystemExit as end:
        status = end.code
    return status, capsys.readouterr().out + message


def add(recording: Recording, path: str, answer: Any) -> None:
    """An answer for the admin token."""
    recording["requests"].append(make_request(path, answer))


def apply_in(database: str, address: str) -> None:
    """A move to a database, in a process of its own."""
    use_database(database)
    call_command("move", "apply", "--from", address, "--token", ADMIN)
