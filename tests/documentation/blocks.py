"""The code blocks of the documentation, and pages as scripts: what a reader would type, in the order of the page."""

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import dedent

from tests.support.paths import ROOT

# Also one that is part of a list's item, and indented so.
FENCED = re.compile(r"^( *)```([\w{}-]*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
PROGRAMS = ("sh", "python", "js")
OUTPUTS = ("json", "text")


@dataclass(frozen=True)
class Block:
    """``line``: where it begins in its page."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first_line(self) -> str:
        return self.text.splitlines()[0]

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {self.language or 'text'}: {self.first_line}"


@cache
def pages() -> tuple[str, ...]:
    """Every page of the repository, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(path for path in sorted(listed.stdout.splitlines()) if (ROOT / path).exists())


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    return [
        Block(page, text[: match.start()].count("\n") + 1, match[2], dedent(match[3]))
        for match in FENCED.finditer(text)
    ]


@dataclass
class Step:
    """A block that is run, with the block that shows what it prints, if there is such a block."""

    block: Block
    shown: Block | None = None


def steps(page: str, not_run: set[str]) -> list[Step]:
    """What is run of a page. ``not_run`` has the first lines of blocks that are not."""
    steps: list[Step] = []
    may_show = False
    for block in blocks(page):
        if block.language in PROGRAMS:
            may_show = block.first_line not in not_run
            if may_show:
                steps.append(Step(block))
        elif block.language in OUTPUTS and may_show:
            steps[-1].shown, may_show = block, False
    return steps


def write_script(steps: list[Step], folder: Path, before: str, ends: dict[str, str]) -> Path:
    """A shell script of all steps. What step N prints is between the lines ``MARK N`` and ``MARK N+1``.

    ``before`` comes first; ``ends`` follow the blocks with these first lines.
    """
    lines = [PRELUDE, before]
    for number, step in enumerate(steps):
        lines.append(f"echo; echo {MARK} {number}")
        end = ends.get(step.block.first_line, "")
        if step.block.language == "sh":
            # What the page has the reader set is the test's: the address of the server and the token.
            text = re.sub(r"^export (URL|TOKEN)=.*\n", "", step.block.text, flags=re.MULTILINE)
            lines.append(text + end)
        else:
            program = folder / f"{number}.{step.block.language}"
            program.write_text(step.block.text + end)
            lines.append(f"run_{step.block.language} {program}")
    script = folder / "page.sh"
    script.write_text("\n".join(lines))
    return script


MARK = "--------step"
PRELUDE = r"""
set -eu
curl() { command curl --silent --show-error ${MAY_FAIL-"--fail-with-body"} "$@"; }
flagadmin() { "$PYTHON" manage.py "$@"; }
run_python() { "$PYTHON" "$1"; }
run_js() {
    case "$(cat "$1")" in
    *@openfeature*) packages=openfeature ;;
    *) packages=unleash-client ;;
    esac
    (cd "tests/clients/$packages" && "$NODE" --input-type=module --eval "$(cat "$1")")
}
"""
