"""Names groups whose names differ by case only: no further ones can be made, and these stay as they are."""

import logging

from django.db import migrations

log = logging.getLogger("flagadmin.setup")

_SAME_NAMES = """
    SELECT string_agg(name, ', ' ORDER BY id) FROM groups_group GROUP BY lower(name) HAVING count(*) > 1 ORDER BY 1
"""


def name_them(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_SAME_NAMES)
        for (names,) in cursor.fetchall():
            log.warning("Groups have names that differ by case only: %s. Rename all but one of them.", names)


class Migration(migrations.Migration):
    dependencies = [("groups", "0013_scim_finds_by_email")]

    operations = [migrations.RunPython(name_them, migrations.RunPython.noop)]
