"""What tests of many subjects import, compile or build at first use, done once before the processes of a run are forked."""

from importlib import import_module
from pathlib import Path

from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.template.loader import get_template
from django.urls import get_resolver
from hypothesis import given, strategies
from hypothesis import settings as generation

MANY = 500  # tests: fewer take less than this does
_IMPORTED_LATE = (
    "django.contrib.admin.views.main", "email_validator", "groups.login.sign_on.adapter", "groups.scim.service",
    "groups.second_factor.passkeys", "groups.second_factor.required", "integrations.calendar.feed", "jsonschema",
    "releases.requests.queries", "requests", "ua_parser",
)  # fmt: skip


def preload() -> None:
    """Opens no connection and starts no thread, which a fork would lose."""
    from flagadmin.console.api_docs.operations import get_openapi_document

    for name in _IMPORTED_LATE:
        import_module(name)
    get_resolver().reverse_dict  # noqa: B018 - read on first use
    MigrationLoader(None)
    for folder in settings.TEMPLATES[0]["DIRS"]:
        for path in Path(folder).rglob("*.html"):
            get_template(str(path.relative_to(folder)))
    get_openapi_document()
    _generate()


@generation(max_examples=100)
@given(strategies.text(), strategies.integers())
def _generate(text: str, number: int) -> None:
    """Hypothesis reads all characters there are, and the constants of our modules."""
