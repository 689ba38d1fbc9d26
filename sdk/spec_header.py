"""The Unleash-Client-Spec header: the version of the client specification that an SDK supports."""

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
