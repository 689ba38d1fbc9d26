from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("projects", "0031_relays")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="link_templates",
            field=models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text='Links that new flags get: [{"title": …, "urlTemplate": "https://…/{{feature}}"}].',
            ),
        ),
    ]
