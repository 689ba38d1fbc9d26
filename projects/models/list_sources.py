"""The URL that the list of a segment is kept in step with."""

from django.db import models

from flagadmin.core.encryption import make_fernet
from projects.models.segments import Segment

_PURPOSE = "list source"


class ListSource(models.Model):
    """``problem``: why the last fetch changed nothing; "" if it succeeded, and ``result`` says what it did.

    ``etag`` counts while the list has the fingerprint ``fetched_hash``: somebody may have changed it since.
    """

    class Format(models.TextChoices):
        LINES = "lines", "One value per line"
        CSV = "csv", "A column of a CSV file"
        JSON = "json", "A JSON list"

    segment = models.OneToOneField(
        Segment, on_delete=models.CASCADE, primary_key=True, related_name="list_source"
    )
    encrypted_url = models.TextField()  # its query may have a secret
    format = models.CharField(max_length=10, choices=Format.choices, default=Format.LINES)
    column = models.CharField(max_length=255, blank=True)
    minutes = models.PositiveIntegerField(default=60)
    set_by = models.ForeignKey("groups.User", models.SET_NULL, null=True, blank=True, related_name="+")
    set_by_name = models.CharField(max_length=255)
    set_at = models.DateTimeField()
    due_at = models.DateTimeField()
    checked_at = models.DateTimeField(null=True, blank=True)
    result = models.TextField(blank=True)
    problem = models.TextField(blank=True)
    etag = models.CharField(max_length=500, blank=True)
    fetched_hash = models.CharField(max_length=32, blank=True)

    def __str__(self) -> str:
        return f"source of segment {self.segment_id}"

    @property
    def url(self) -> str:
        """Raises cryptography.fernet.InvalidToken if it was encrypted with a lost SECRET_KEY."""
        return make_fernet(_PURPOSE).decrypt(self.encrypted_url).decode()

    @url.setter
    def url(self, text: str) -> None:
        self.encrypted_url = make_fernet(_PURPOSE).encrypt(text.encode()).decode()
