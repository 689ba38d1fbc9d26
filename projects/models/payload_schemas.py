"""JSON Schemas of the payloads of flags."""

from django.db import models

from projects.models.flags import Flag


class PayloadSchema(models.Model):
    """The schema of all JSON payloads of a flag's variants. All stored ones satisfy it."""

    flag = models.OneToOneField(
        Flag, primary_key=True, on_delete=models.CASCADE, related_name="payload_schema"
    )
    schema = models.JSONField()

    def __str__(self) -> str:
        return f"payload schema of {self.flag.name}"
