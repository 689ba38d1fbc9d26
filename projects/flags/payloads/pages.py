"""…/payload-schema: the page that edits the JSON Schema of a flag's JSON payloads."""

from typing import Any

import orjson
from django import forms
from django.db.models import QuerySet

from flagadmin.core.audit.events import EventType
from flagadmin.core.audit.models import AuditEvent
from flagadmin.core.errors import ValidationError
from flagadmin.core.http.json_bodies import parse_json
from groups.console import EditPage, Permission
from projects.access import access_flag
from projects.console import OnFlagPage, flag_url
from projects.flags.payloads.actions import schema_document, set_schema
from projects.history.queries import readable_events


class PayloadSchemaForm(forms.Form):
    schema = forms.CharField(
        required=False,
        label="JSON Schema",
        widget=forms.Textarea(attrs={"rows": 16, "class": "mono", "spellcheck": "false"}),
        help_text="Draft 2020-12. Leave empty to allow any JSON.",
    )

    def clean_schema(self) -> Any:
        text = self.cleaned_data["schema"].strip()
        try:
            return parse_json(text.encode()) if text else None
        except ValidationError as error:
            raise forms.ValidationError(error.message.replace("The body", "It")) from error


class PayloadSchemaPage(OnFlagPage, EditPage):
    title = "Payload schema of {name}"
    template_name = "console/form.html"
    form_class = PayloadSchemaForm
    button = "Save payload schema"
    api_call = "PUT /api/admin/projects/{project_id}/features/{name}/payload-schema"

    def find(self) -> None:
        """Raises NotFound, NoAccess."""
        permission = Permission.UPDATE_FEATURE
        self.flag = access_flag(self.caller, *self.place, archived=False, permission=permission)
        self.stored = schema_document(self.flag)

    def get_events(self) -> QuerySet[AuditEvent]:
        changes = readable_events(self.caller).filter(type=EventType.FEATURE_PAYLOAD_SCHEMA_UPDATED)
        return changes.filter(feature=self.flag.name)

    def get_current_document(self) -> dict[str, Any]:
        return self.stored

    def get_initial(self) -> dict[str, Any]:
        schema = self.stored["schema"]
        text = "" if schema is None else orjson.dumps(schema, option=orjson.OPT_INDENT_2).decode()
        return {"schema": text}

    def submit(self, form: PayloadSchemaForm) -> str:
        schema = form.cleaned_data["schema"]
        set_schema(*self.place, schema, expected=self.version.expected, caller=self.caller)
        done = "Removed" if schema is None else "Saved"
        return self.done(f"{done} the payload schema of {self.flag.name}.", flag_url(*self.place))

    def get_api_body(self) -> dict[str, Any]:
        return {"schema": self.stored["schema"] or {"type": "object"}}
