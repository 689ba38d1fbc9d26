"""/projects/ID/export?environment=production: downloads the flags of a project.

Segments include their constraints, so that the file can be imported into flagadmin again; in the API that is an option.
"""

from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse

from groups.console import ConsolePage
from importer.api import file_name
from importer.export import Selection, export_selection
from projects.access import access_project


class ExportFile(ConsolePage):
    """Raises NotFound for an unknown project, ValidationError for an unknown environment."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project = access_project(self.caller, kwargs["project_id"])
        environment = request.GET.get("environment", "")
        selection = Selection(environment=environment, project=project.pk, full_segments=True)
        document = orjson.dumps(export_selection(selection, caller=self.caller))
        headers = {"Content-Disposition": f'attachment; filename="{file_name(selection)}"'}
        return HttpResponse(document, content_type="application/json", headers=headers)
