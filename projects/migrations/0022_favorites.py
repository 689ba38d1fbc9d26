"""The models of favorites get the spelling that the API has. Tables and constraints keep theirs: a 1.2 server beside uses them."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("projects", "0021_unknown_flags"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                operation
                for old, new, kind, table in (
                    ("FavouriteFlag", "FavoriteFlag", "flag", "projects_favouriteflag"),
                    ("FavouriteProject", "FavoriteProject", "project", "projects_favouriteproject"),
                )
                for operation in (
                    migrations.RenameModel(old, new),
                    migrations.AlterModelTable(new, table),
                    migrations.AlterField(
                        new,
                        kind,
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name="favorites",
                            to=f"projects.{kind}",
                        ),
                    ),
                    migrations.AlterField(
                        new,
                        "user",
                        models.ForeignKey(
                            on_delete=django.db.models.deletion.CASCADE,
                            related_name=f"favorite_{kind}s",
                            to=settings.AUTH_USER_MODEL,
                        ),
                    ),
                )
            ],
        ),
    ]
