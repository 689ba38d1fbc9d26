"""Tables of the documentation, so that tests hold them true."""

from tests.support.paths import ROOT


def rows(document: str, heading: str) -> list[list[str]]:
    """The cells of the table in ``docs/`` whose first column has this heading, without its first two lines."""
    lines = iter((ROOT / "docs" / document).read_text().splitlines())
    for line in lines:
        if line.startswith(f"| {heading} |"):
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    assert found, f"{document} has no table {heading}"
    return found
