"""The columns of lists. A column is one record: its head, cells, sorting and CSV values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.template import Engine, Template


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a list. ``key`` is its name in the URL; ``by`` names the fields to sort by.

    The database sorts the rows of a queryset; rows of a list are sorted by their attributes of these names. A
    column without ``by`` cannot be sorted. A column without ``key`` has buttons, and is not in the CSV file.

    ``value`` is where a row has the column's value, ``root_role.name``; by default the first field to sort by, else
    the key. The cell shows it, and the CSV file has it, unless ``csv`` computes another, or is the path of one.
    The others are parts of templates with the variable ``row`` and those of the page.
    """

    key: str
    label: str
    by: tuple[str, ...] = ()
    numeric: bool = False
    value: str = ""
    csv: Callable[[Any], Any] | str = ""
    shown: str = ""  # filters of the value: "ago"
    cell: str = ""  # the content of the cell in place of the value
    none: str = ""  # a word in place of a value that is missing
    pill: str | None = None  # the classes of a pill around it
    link: str = ""  # the URL of a link around it
    below: str = ""  # a second line, with filters: "description|truncatechars:140"
    css: str = ""  # classes of the cell
    attributes: str = ""  # further ones of the cell
    heads_row: bool | None = None  # whether it names the row; by default the first column does
    unlabeled: bool = (
        False  # whether cells say it all without the label, which narrow screens show beside them
    )
    permission: Any = None  # what the caller needs to see it

    @property
    def path(self) -> str:
        return self.value or (self.by[0].replace("__", ".") if self.by else self.key)

    def read_csv(self, row: Any) -> Any:
        return self.csv(row) if callable(self.csv) else read_value(row, self.csv or self.path)

    def make_cell(self, *, heads_row: bool) -> str:
        """The template of its cells."""
        classes = " ".join(
            filter(None, ("num" if self.numeric else "", self.css or ("" if self.key else "act")))
        )
        attributes = f' class="{classes}"' if classes else ""
        if self.key and not heads_row and not self.unlabeled:
            attributes += f' data-label="{self.label}"'
        attributes += f" {self.attributes}" if self.attributes else ""
        start, end = ('<th scope="row"', "</th>") if heads_row else ("<td", "</td>")
        return f"{start}{attributes}>{self._make_content()}{end}"

    def _make_content(self) -> str:
        filters = self.shown or ("grouped" if self.numeric else "")
        content = self.cell or f"{{{{ row.{self.path}{'|' if filters else ''}{filters} }}}}"
        if self.none:
            missing = f'<span class="muted">{self.none}</span>'
            content = f"{{% if row.{self.path} %}}{content}{{% else %}}{missing}{{% endif %}}"
        if self.pill is not None:
            content = f'<span class="{f"pill {self.pill}".strip()}">{content}</span>'
        if self.link:
            content = f'<a href="{self.link}">{content}</a>'
        if self.below:
            line = f'<small class="below">{{{{ row.{self.below} }}}}</small>'
            content += f"{{% if row.{self.below.partition('|')[0]} %}}{line}{{% endif %}}"
        return content


def read_value(row: Any, path: str) -> Any:
    """The value of this path; None if a part of it is."""
    for name in path.split("."):
        if row is None:
            return None
        row = row[name] if isinstance(row, Mapping) else getattr(row, name)
    return row


@lru_cache(maxsize=200)
def make_table(columns: tuple[Column, ...]) -> Template:
    """The template of a table with ``rows``. Its head is that of ``listing``."""
    return Engine.get_default().from_string(write_table(columns))


def write_table(columns: Sequence[Column]) -> str:
    head = next((column for column in columns if column.heads_row), columns[0])
    cells = "\n".join(column.make_cell(heads_row=column is head) for column in columns)
    return (
        "{% load icons lists moments numbers %}"
        '<table class="{{ view.table_class }}">{% include "includes/thead.html" %}'
        f"<tbody>{{% for row in rows %}}<tr>\n{cells}\n</tr>\n{{% endfor %}}</tbody></table>"
    )
