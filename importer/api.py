"""POST /api/admin/features-batch/import, /validate and /export."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.parsers import BaseParser
from rest_framework.response import Response
from rest_framework.views import APIView

from groups.authentication import ApiRequest
from importer.apply import import_body
from importer.wire import Body, parse_body


class BytesParser(BaseParser):
    """JSON left as it came: the import reads it itself, faster and with all faults at once."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream.read()


class BatchView(APIView):
    body_limit = settings.IMPORT_BODY_LIMIT
    parser_classes = (BytesParser,)

    def body_of(self, request: ApiRequest) -> Body:
        """Raises ValidationError, ContentTypeNotAccepted."""
        return parse_body(request.data if isinstance(request.data, bytes) else b"")


class ImportView(BatchView):
    @extend_schema(exclude=True)
    def post(self, request: ApiRequest) -> Response:
        import_body(self.body_of(request), caller=request.user)
        return Response()
