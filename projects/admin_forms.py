"""Values of the admin site's forms, as the actions take them."""

from typing import Any

TEXTS = ("description", "title", "icon", "color")


def values(form: Any, *, blank: bool = False) -> dict[str, Any]:
    """What the form gives by model field, projects by id. ``blank``: texts that are empty are so, and not null."""
    given = dict(form.cleaned_data)
    if "project" in given:
        project = given.pop("project")
        given["project_id"] = project.pk if project else None
    return given if blank else {k: None if k in TEXTS and v == "" else v for k, v in given.items()}
