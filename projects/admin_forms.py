"""Converts the cleaned data of an admin form to the values that actions take."""

from typing import Any

TEXTS = ("description", "title", "icon", "color")


def values(form: Any, *, blank: bool = False) -> dict[str, Any]:
    """Cleaned data by model field, with ``project_id`` for ``project``.

    Empty strings become None unless ``blank``.
    """
    given = dict(form.cleaned_data)
    if "project" in given:
        project = given.pop("project")
        given["project_id"] = project.pk if project else None
    return given if blank else {k: None if k in TEXTS and v == "" else v for k, v in given.items()}
