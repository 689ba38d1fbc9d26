"""While an upgrade rolls out, servers of the previous version work with the new version's database.

So a migration may add, and it may remove only what the version before it no longer uses (docs/operations/upgrade.md).
"""

from collections import defaultdict

from django.db import migrations, models
from django.db.migrations.loader import MigrationLoader
from django.db.models.fields import NOT_PROVIDED

from tests.support.paths import APPS

# The last migrations of version 1.3.0.
RELEASED = {
    "audit": 7,
    "groups": 14,
    "importer": 12,
    "installation": 1,
    "integrations": 8,
    "playground": 7,
    "projects": 35,
    "releases": 14,
}
# Migrations that the previous version cannot work with, with the reason why that is no harm.
ALLOWED: dict[str, str] = {}

REMOVING = (migrations.RemoveField, migrations.DeleteModel, migrations.RenameField, migrations.RenameModel)


def needs_a_value(field):
    """Whether a row without this column is refused: Django's defaults are not in the database."""
    if isinstance(field, models.GeneratedField):
        return False
    return not (field.null or field.many_to_many or field.primary_key or field.db_default is not NOT_PROVIDED)


def problems(operation, created):
    if isinstance(operation, REMOVING):
        yield f"{type(operation).__name__}: the previous version still uses it"
    elif isinstance(operation, migrations.AddField) and operation.model_name_lower not in created:
        if needs_a_value(operation.field):
            yield f"{operation.model_name}.{operation.name} needs a db_default: the previous version does not write it"
    elif isinstance(operation, migrations.AlterModelTable):
        yield "AlterModelTable: the previous version uses the old name"


def problems_of(migration, created):
    """``created`` gets the models that the previous version does not know."""
    operations = list(migration.operations)
    created.update(each.name_lower for each in operations if isinstance(each, migrations.CreateModel))
    for operation in operations:
        if isinstance(operation, migrations.SeparateDatabaseAndState):
            operations.extend(operation.database_operations)
        yield from problems(operation, created)


def test_the_previous_version_works_with_a_migrated_database():
    loader = MigrationLoader(None, ignore_no_migrations=True)
    statements, created = {}, defaultdict(set)
    for (app, name), migration in sorted(loader.disk_migrations.items()):
        if (
            migration.__module__.partition(".")[0] in APPS
            and int(name[:4]) > RELEASED.get(app, 0)
            and (texts := list(problems_of(migration, created[app])))
        ):
            statements[f"{app}.{name}"] = texts
    assert {name: texts for name, texts in statements.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= statements.keys()


def test_what_the_previous_version_cannot_work_with_is_found():
    removed = migrations.RemoveField("flag", "stale")
    added = migrations.AddField("flag", "owner", models.CharField(max_length=10, default=""))
    harmless = migrations.AddField("flag", "owner", models.CharField(max_length=10, db_default=""))
    assert [len(list(problems(each, set()))) for each in (removed, added, harmless)] == [1, 1, 0]
