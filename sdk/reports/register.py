"""POST /api/client/register: an SDK reports that it has started."""

from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework.response import Response

from groups.authentication import ApiRequest
from projects.applications.usage_report import Instance, InstanceKey, UsageReport
from sdk import schemas as wire
from sdk.base import ClientView, get_environment, get_token
from sdk.reports.batcher import report_batcher

ACCEPTED = OpenApiResponse(description="Stored. No body.")
EXAMPLE = {
    "appName": "web-shop",
    "instanceId": "web-shop-7d9f",
    "sdkVersion": "unleash-node-sdk:6.12.1",
    "strategies": ["default", "flexibleRollout"],
    "started": "2026-11-21T03:26:33.451Z",
    "interval": 60000,
    "platformName": "node",
    "platformVersion": "22.23.3",
    "specVersion": "5.2.0",
}


class RegisterView(ClientView):
    @extend_schema(
        operation_id="registerClientApplication",
        request=wire.Registration,
        responses={202: ACCEPTED},
        examples=[OpenApiExample("Registration", value=EXAMPLE, request_only=True)],
    )
    def post(self, request: ApiRequest) -> Response:
        """Register an SDK that has started. The answer comes once it is stored.

        The environment is that of the token.
        """
        body = wire.read(wire.Registration, request.data)
        report = UsageReport()
        place = InstanceKey(body.appName, str(body.instanceId), get_environment(request))
        report.add_instance(place, make_instance(body, request), body.strategies)
        report_batcher.submit(report, token=get_token(request).pk)
        return Response(status=202)


def make_instance(body: wire.Platform, request: ApiRequest | None = None, *, sdk_type: str = "") -> Instance:
    """The SDK's information about itself, from the body or (name and version) the ``unleash-sdk`` header."""
    sdk = body.sdkVersion or (wire.read_sdk_header(request.headers) if request else "")
    return Instance(
        sdk,
        sdk_type,
        body.platformName or "",
        body.platformVersion or "",
        body.specVersion or "",
        body.yggdrasilVersion or "",
        ":".join(filter(None, (body.sdkFlavor, body.sdkFlavor and body.sdkFlavorVersion))),
    )
