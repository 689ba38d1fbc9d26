"""Headers from and to SDKs: supported features (Unleash-Client-Spec), and permissions for browsers of other origins.

Knows no framework.
"""

from collections.abc import Collection

from semver import Version

from flagadmin.core.errors import ValidationError

HEADER = "Unleash-Client-Spec"
KNOWS_SEGMENTS = Version(4, 2, 0)


def knows_segments(header: str) -> bool:
    """Whether the SDK supports segments by id. False without the header: it then gets their constraints.

    Raises ValidationError if the header is not a valid version.
    """
    text = header.strip()
    if not text:
        return False
    if not text[0].isdigit():
        raise ValidationError.at(HEADER, f'Invalid prefix in the {HEADER} header: "{text}".')
    try:
        return Version.parse(text) >= KNOWS_SEGMENTS
    except ValueError:
        raise ValidationError.at(HEADER, f'Invalid SemVer in the {HEADER} header: "{text}".') from None


PREFLIGHT_SECONDS = "3600"
METHODS = "GET, POST, OPTIONS"


def make_headers(origin: str, allowed: Collection[str]) -> dict[str, str]:
    """``allowed`` are origins; ``*`` stands for all, which is safe because tokens are not cookies."""
    headers = {"Vary": "Origin, Access-Control-Request-Headers, Accept-Encoding"}
    if "*" in allowed or origin in allowed:
        headers["Access-Control-Allow-Origin"] = "*" if "*" in allowed else origin
        headers["Access-Control-Expose-Headers"] = "ETag"
    return headers


def make_preflight_headers(requested: str, methods: str = METHODS) -> dict[str, str]:
    """``requested`` is the browser's Access-Control-Request-Headers."""
    return {
        "Access-Control-Allow-Methods": methods,
        "Access-Control-Allow-Headers": requested or "authorization, content-type",
        "Access-Control-Max-Age": PREFLIGHT_SECONDS,
    }
