"""/projects/ID/export?environment=production: downloads the flags of a project.

Segments always include their constraints, so that flagadmin can import the file. In the API, this is an
option.
"""

from typing import Any

import orjson
from django.http import HttpRequest, HttpResponse

from groups.console import ConsolePage
from importer.api import make_file_name
from importer.export import Selection, export_selection
from projects.access import access_project


class ExportFile(ConsolePage):
    """Downloads the export. Raises NotFound (unknown project), ValidationError (unknown environment)."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        project = access_project(self.caller, kwargs["project_id"])
        environment = request.GET.get("environment", "")
        selection = Selection(
            environment=environment,
            project=project.pk,
            full_segments=True,
            saved_contexts="saved-contexts" in request.GET,
        )
        document = orjson.dumps(export_selection(selection, caller=self.caller))
        headers = {"Content-Disposition": f'attachment; filename="{make_file_name(selection)}"'}
        return HttpResponse(document, content_type="application/json", headers=headers)
