"""Says of impact metrics which tokens report them. What was reported before counts as from backend tokens of all projects:
safeguards go on with it, and totals of a month do not fall below their thresholds."""

import django.contrib.postgres.fields
from django.db import migrations, models

ORIGIN = models.TextField(blank=True, db_collation="C", db_default="", default="")


def _key(*fields):
    return models.CompositePrimaryKey(*fields, blank=True, editable=False, primary_key=True, serialize=False)


def _extend_key(table, columns):
    add = f"ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY ({columns}, origin)"
    return migrations.RunSQL(add, f"TRUNCATE {table}; ALTER TABLE {table} DROP CONSTRAINT {table}_pkey, ADD PRIMARY KEY ({columns})")


class Migration(migrations.Migration):
    dependencies = [("projects", "0033_share_of_percentages")]

    operations = [
        migrations.CreateModel(
            name="ImpactOrigin",
            fields=[
                ("id", models.TextField(db_collation="C", primary_key=True, serialize=False)),
                ("is_frontend", models.BooleanField()),
                (
                    "projects",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
            ],
        ),
        migrations.AddField("impactseries", "origin", ORIGIN),
        migrations.AddField("impactpoint", "origin", ORIGIN),
        migrations.SeparateDatabaseAndState(
            [
                _extend_key("projects_impactseries", "name, labels"),
                _extend_key("projects_impactpoint", "name, at, labels, is_hour"),
            ],
            [
                migrations.AlterField("impactseries", "pk", _key("name", "labels", "origin")),
                migrations.AlterField("impactpoint", "pk", _key("name", "at", "labels", "is_hour", "origin")),
            ],
        ),
    ]
