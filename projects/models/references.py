"""References to flags in code, as reported by CI."""

from typing import Any

from django.db import models


class CodeReport(models.Model):
    """The last report about a repository. ``link`` is the URL of a place: ``{path}``, ``{line}`` and ``{revision}``."""

    repository = models.CharField(max_length=200, unique=True)
    revision = models.CharField(max_length=100, blank=True)
    link = models.CharField(max_length=500, blank=True)
    reported_at = models.DateTimeField()
    reported_by = models.CharField(max_length=255)

    class Meta:
        ordering = ["repository"]

    def __str__(self) -> str:
        return self.repository


class CodeReference(models.Model):
    """A flag in a repository: the first ``places`` as ``[[path, line], …]``, and the total number."""

    report = models.ForeignKey(CodeReport, on_delete=models.CASCADE, related_name="references")
    flag = models.ForeignKey("projects.Flag", on_delete=models.CASCADE, related_name="references")
    count = models.PositiveIntegerField()
    places: Any = models.JSONField()

    class Meta:
        ordering = ["report", "flag"]
        constraints = [models.UniqueConstraint(fields=["report", "flag"], name="code_reference_once")]

    def __str__(self) -> str:
        return f"{self.flag} in {self.report}"
