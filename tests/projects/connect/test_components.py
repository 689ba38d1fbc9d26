"""The programs for React and Vue, as the page shows them, get their flag from a real server."""

import re
import subprocess
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from projects.connect.snippets import find_snippet, render
from tests.support.cast import make_token
from tests.support.flags import make_flag
from tests.support.node_packages import installed
from tests.support.programs import program

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes, pytest.mark.exhaustive]


@pytest.mark.parametrize(("language", "ending"), [("react", "jsx"), ("vue", "vue")])
def test_the_component_shows_the_flag(
    language: str, ending: str, live_server: Any, transactional_db: None, tmp_path: Path
) -> None:
    folder = installed("components")
    make_flag("instant-refunds", "default", enabled=True)
    token = make_token("frontend", projects=["default"], environment="development")
    shown = render(find_snippet(language), url=live_server.url, flag="instant-refunds", token=token)
    (tmp_path / f"App.{ending}").write_text(unescape(re.sub("</?mark>", "", shown)))

    done = subprocess.run(
        [program("node"), folder / "show.mjs", f"App.{ending}", "instant-refunds true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout.strip(), done.returncode) == ("instant-refunds true", 0), done.stderr
