"""The preview of another product's file: its conversion, and the choices it offers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict

from flagadmin.core.errors import ValidationError
from flagadmin.core.wording import choices
from importer.converting.changes import describe_change
from importer.converting.convert import Exactness, Missing, Options
from importer.converting.rollouts import DESCRIPTIONS, Choice

SHORT = {
    Choice.NEW: "Start a new rollout",
    Choice.KEEP: "Keep today's users",
    Choice.BOTH: "Today's users or new ones",
    Choice.FINISH: "Leave out until finished",
}
MISSING = {Missing.OFF: "Import it off", Missing.LEAVE_OUT: "Leave it out"}
MARKS = {
    Exactness.EXACT: "on",
    Exactness.APPROXIMATE: "warn",
    Exactness.OFF: "off",
    Exactness.LEFT_OUT: "off",
}


@dataclass(frozen=True, slots=True)
class ConvertedRow:
    """``percentages`` are the choices of a flag that has some: value, label, whether it is the present one."""

    name: str
    exactness: str
    mark: str
    sentences: list[str]
    percentages: list[tuple[str, str, bool]]


class ConversionForm(forms.Form):
    """The choices for percentages, and for flags that cannot be converted."""

    percentages = forms.ChoiceField(
        label="Percentages",
        choices=list(SHORT.items()),
        help_text="Each product hashes differently, so the same percentage means different users here.",
    )
    missing = forms.ChoiceField(label="Parts without an equivalent", choices=list(MISSING.items()))
    users = forms.FileField(
        required=False,
        label="Your users",
        help_text="A CSV file with a column userId: who changes, and whom to keep.",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,text/csv"}),
    )


def make_conversion_context(conversion: Mapping[str, Any]) -> dict[str, Any]:
    """``conversion``: the report that a run's preview stores."""
    counts = conversion["counts"]
    return {
        "conversion": conversion,
        "conversion_counts": [
            (counts[each], str(each), MARKS[each]) for each in Exactness if counts.get(str(each))
        ],
        "conversion_rows": list(_make_rows(conversion)),
        "conversion_form": ConversionForm(
            initial={"percentages": conversion["percentages"], "missing": conversion["missing"]}
        ),
        "choice_descriptions": [(SHORT[choice], words) for choice, words in DESCRIPTIONS.items()],
    }


def _make_rows(conversion: Mapping[str, Any]) -> Iterator[ConvertedRow]:
    own = conversion["choices"]
    for flag in conversion["flags"]:
        present = own.get(flag["name"], "")
        offered = [("", "As for all"), *((str(choice), label) for choice, label in SHORT.items())]
        yield ConvertedRow(
            flag["name"],
            flag["exactness"],
            MARKS[Exactness(flag["exactness"])],
            [note["message"] for note in flag["notes"]]
            + ([describe_change(flag["users"], conversion["usersName"])] if "users" in flag else []),
            [(f"{flag['name']}={choice}", label, choice == present) for choice, label in offered]
            if "percentages" in flag
            else [],
        )


def read_options(data: QueryDict) -> Options:
    """The choices that were sent. Raises ValidationError."""
    own: dict[str, Choice] = {}
    for entry in data.getlist("choice"):
        name, _, choice = entry.rpartition("=")
        if choice:
            own[name] = _read(Choice, "choice", choice)
    return Options(
        _read(Choice, "percentages", data.get("percentages", "")),
        own,
        _read(Missing, "missing", data.get("missing", "")),
    )


def _read(kind: Any, path: str, value: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise ValidationError.at(path, f"must be one of {choices(kind)}") from None
