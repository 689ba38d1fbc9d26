"""What prevents an analysis."""

EXTRA = "flagadmin[experiments]"


class ExtraMissing(Exception):
    """The packages of the extra are not installed. Its text says how to install them."""

    def __init__(self) -> None:
        super().__init__(f"Analyses need more packages. Install {EXTRA} on the server: pip install '{EXTRA}'")


class BadCell(ValueError):
    """A cell is no number. ``row`` is its place among the rows of its call of ``add``, from 0."""

    def __init__(self, row: int, column: str, text: str) -> None:
        super().__init__(f'must be a number, true or false, or empty, not "{text[:100]}"')
        self.row, self.column = row, column
