"""Every code block of the documentation is run by a test, or listed with the reason why it is not."""

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

from django.core.management import CommandError, get_commands

from flagadmin import client
from flagadmin.command import CommandLine
from tests.documentation.blocks import Block, blocks, pages
from tests.documentation.not_run import ELSEWHERE, NOT_RUN, PAGES_NOT_RUN, RUN, is_program, why_not_run
from tests.support.paths import ROOT

EVERY = [block for page in pages() for block in blocks(page)]
ENDS = {"|", "||", ">", "<", "&&", ";", "2>&1", "&"}


def is_run(block: Block) -> bool:
    named = block.page, block.first_line
    return named in ELSEWHERE or (block.page in RUN and why_not_run(block) is None)


NOT_RUN_HERE = [block for block in EVERY if is_program(block) and not is_run(block)]


def test_every_program_is_run_or_there_is_a_reason() -> None:
    """Run by a test, or listed in ``not_run.py``, which says why it is not."""
    forgotten = [str(block) for block in NOT_RUN_HERE if not why_not_run(block)]
    assert not forgotten, forgotten


def test_what_is_listed_exists() -> None:
    known = {(block.page, block.first_line) for block in EVERY}
    assert (ELSEWHERE.keys() | NOT_RUN.keys()) - known == set()
    assert PAGES_NOT_RUN.keys() - set(pages()) == set()
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).exists()] == []


def fault_of_json(block: Block) -> str:
    try:
        json.loads(block.text)
    except ValueError as error:
        return f"{block}: {error}"
    return ""


def test_json_is_valid() -> None:
    shown = [block for block in EVERY if block.language == "json"]
    assert shown
    faults = list(filter(None, map(fault_of_json, shown)))
    assert not faults, faults


def commands(block: Block) -> Iterator[list[str]]:
    """The commands of flagadmin in a shell block: their names and arguments."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if "manage.py" in line or "flagadmin " in line:
            try:
                words = shlex.split(line.partition("$(")[2].rstrip(")") or line, comments=True)
            except ValueError:
                continue
            for place, word in enumerate(words):
                if Path(word).name in ("manage.py", "flagadmin") and place + 1 < len(words):
                    rest = words[place + 1 :]
                    end = next((number for number, each in enumerate(rest) if each in ENDS), len(rest))
                    yield rest[:end]
                    break


def refusal_of(block: Block, words: list[str]) -> str:
    """What the command says of arguments that it does not take, or nothing."""
    name, *arguments = words
    try:
        CommandLine(["flagadmin"]).fetch_command(name).create_parser("flagadmin", name).parse_args(arguments)
    except (CommandError, SystemExit) as error:
        return f"{block.page}:{block.line}: {shlex.join(words)}: {error}"
    return ""


def test_commands_have_the_arguments_that_pages_give_them() -> None:
    found = [
        (block, words)
        for block in EVERY
        if block.language == "sh"
        for words in commands(block)
        if words and words[0] in {*get_commands(), *client.NAMES}
    ]
    assert len(found) > 30
    refusals = [refusal for each in found if (refusal := refusal_of(*each))]
    assert not refusals, refusals
