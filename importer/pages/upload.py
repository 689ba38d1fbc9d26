"""/import/: a file or a pasted text, and where it is to go. Nothing is written but the file, for its uploader."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.conf import settings
from django.urls import path, reverse

from flagadmin.console.lists import curl_for
from flagadmin.errors import AppError, Problem
from groups.access import Caller
from groups.console import FormPage
from groups.permissions import Permission
from importer.isolation import beside
from importer.runs import keep
from projects.access import readable_projects
from projects.models import Environment

STEPS = ("File", "Check changes", "Result")
PROBLEMS_SHOWN = 100
NOWHERE = "There is no project whose flags you may change. An admin or an owner can give you a role in one."


class UploadForm(forms.Form):
    """Which file, and into what. There is no default target: an import into the wrong place is the worst one."""

    file = forms.FileField(
        required=False,
        label="Export file",
        help_text="Drop it here or choose it: JSON, as an export writes it.",
        widget=forms.ClearableFileInput(attrs={"accept": ".json,application/json", "class": "drop"}),
    )
    text = forms.CharField(
        required=False,
        label="Or paste its text",
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false", "class": "mono"}),
    )
    project = forms.ChoiceField(label="Into project")
    environment = forms.ChoiceField(label="Into environment")

    def __init__(
        self, *args: Any, projects: Sequence[str], environments: Sequence[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        for name, names in (("project", projects), ("environment", environments)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", "Choose…"), *((item, item) for item in names)]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not cleaned.get("file") and not cleaned.get("text", "").strip() and not self.errors.get("file"):
            self.add_error("file", "Choose a file, or paste its text below.")
        return cleaned

    def body(self) -> tuple[bytes, str]:
        """What was given, and the name of its file ("" for pasted text)."""
        file = self.cleaned_data["file"]
        return (file.read(), file.name or "") if file else (self.cleaned_data["text"].encode(), "")


class UploadPage(FormPage):
    template_name = "importer/upload.html"
    title = "Import flags"
    body_limit = settings.IMPORT_BODY_LIMIT
    faults: Sequence[Problem] = ()

    def get_form(self, data: Any = None) -> UploadForm:
        given = self.request.GET
        return UploadForm(
            data,
            self.request.FILES or None,
            initial={"project": given.get("project"), "environment": given.get("environment")},
            projects=importable_projects(self.caller),
            environments=list(Environment.objects.values_list("name", flat=True)),
        )

    def submit(self, form: UploadForm) -> str:
        body, file_name = form.body()
        try:
            run_id = beside(
                len(body),
                keep,
                body,
                caller=self.caller,
                project=form.cleaned_data["project"],
                environment=form.cleaned_data["environment"],
                file_name=file_name,
            )
        except AppError as error:
            self.faults = error.details
            raise
        return reverse("import-run", args=[run_id])

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            steps=STEPS,
            faults=self.faults[:PROBLEMS_SHOWN],
            more_faults=max(len(self.faults) - PROBLEMS_SHOWN, 0),
            blocked="" if importable_projects(self.caller) else NOWHERE,
            limit=settings.IMPORT_BODY_LIMIT // 1_000_000,
            **kwargs,
        )

    def curl(self) -> str:
        call = curl_for(self.request, "POST", "/api/admin/features-batch/validate")
        return f"{call} -H 'Content-Type: application/json' --data-binary @export.json"


def importable_projects(caller: Caller) -> list[str]:
    """Where this caller may import to."""
    projects = readable_projects(caller).filter(archived_at=None).values_list("id", flat=True)
    return [project for project in projects if caller.can(Permission.UPDATE_FEATURE, project=project)]


urlpatterns = [path("import/", UploadPage.as_view(), name="import")]
