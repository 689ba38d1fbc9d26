"""What is checked in under ``tests/vectors`` is what the recordings condense to."""

from pathlib import Path

from tests.compatibility import condense as life
from tests.vectors import condense


def test_the_life() -> None:
    assert life.CONDENSED.read_text() == life.written(), "python -m tests.compatibility.condense"


def test_the_other_vectors(tmp_path: Path) -> None:
    condense.write(tmp_path)
    written = {path.relative_to(tmp_path): path.read_text() for path in tmp_path.rglob("*.json*")}
    different = [name for name, text in written.items() if text != (condense.FOLDER / name).read_text()]

    assert len(written) == 9
    assert different == [], "python -m tests.vectors.condense"
