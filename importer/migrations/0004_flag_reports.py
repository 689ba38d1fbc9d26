import django.db.models.deletion
from django.db import migrations, models

MOVE = """
INSERT INTO importer_flagreport (run_id, name, action, reason, summary, changes, is_here)
SELECT r.id, f ->> 'name', f ->> 'action', coalesce(f ->> 'reason', ''), coalesce(f ->> 'summary', ''),
       coalesce(f -> 'changes', '[]'), f ->> 'action' IN ('change', 'same')
  FROM importer_importrun r, jsonb_array_elements(r.result) WITH ORDINALITY AS listed(f, place)
 ORDER BY r.id, place
"""
# Pending runs have no preview in the new format, and would expire within a day.
FORGET = "DELETE FROM importer_importrun WHERE state IN ('pending', 'running')"


class Migration(migrations.Migration):
    dependencies = [("importer", "0003_no_failed_runs")]

    operations = [
        migrations.CreateModel(
            name="FlagReport",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.TextField()),
                ("action", models.CharField(max_length=16)),
                ("reason", models.TextField(blank=True)),
                ("summary", models.TextField(blank=True)),
                ("changes", models.JSONField(blank=True, default=list)),
                ("is_here", models.BooleanField(default=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reports",
                        to="importer.importrun",
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["run", "id"], name="flag_report_of_run")],
            },
        ),
        migrations.RunSQL(FORGET, migrations.RunSQL.noop),
        migrations.RunSQL(MOVE, migrations.RunSQL.noop),
        migrations.RemoveField("importrun", "result"),
        migrations.AddField("importrun", "preview", models.JSONField(blank=True, default=dict)),
        migrations.AddField("importrun", "size", models.PositiveIntegerField(default=0)),
    ]
