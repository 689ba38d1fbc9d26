"""Where our import is different from the reference's on purpose. By the number of the recorded case."""

from typing import NamedTuple


class Better(NamedTuple):
    """The status here, and why. With ``same_state`` the answer and the state afterwards are still as recorded."""

    status: int
    why: str
    same_state: bool = False


UNKNOWN = "an unknown name in a body is a 400 that names the choices"
REFUSED = (
    "what does not fit is a 400 ValidationError with everything that is wrong, whatever kind it is there"
)
LOUD = "nothing is dropped silently"

BETTER: dict[str, Better] = {
    "014": Better(400, "the limit of 30 strategies holds"),
    "025": Better(
        200, "features[].enabled is an older place of the switch and counts where no newer one speaks"
    ),
    "029": Better(400, "features[].dependencies counts, and its parent x does not exist; there it is a 500"),
    "031": Better(200, "features[].strategies is an older place that counts where no newer one speaks"),
    "034": Better(200, "an explicit empty list clears environment variants"),
    "043": Better(400, REFUSED, same_state=True),
    "046": Better(400, REFUSED, same_state=True),
    "047": Better(400, "dependencies of a child without features[].project count; its parent is archived"),
    "049": Better(404, "an unknown project is refused in what is read of it afterwards, too"),
    "050": Better(404, "an unknown project is not found, also where there is nothing to import"),
    "053": Better(400, UNKNOWN),
    "055": Better(400, UNKNOWN),
    "056": Better(
        400, "the environment is not in use in the project: strategies would be stored out of sight"
    ),
    "058": Better(400, UNKNOWN),
    "059": Better(200, "the flag of a featureEnvironments entry is its featureName, whatever its name says"),
    "061": Better(400, LOUD + ": a strategy without featureName is refused"),
    "062": Better(400, REFUSED, same_state=True),
    "064": Better(400, REFUSED, same_state=True),
    "065": Better(400, REFUSED, same_state=True),
    "107": Better(400, "a repeated context field is a 400; there it is a 500"),
    "113": Better(400, "an unlisted segment id is a 400; there it is a 500"),
    "118": Better(400, "a repeated segment is a 400; there it is a 500"),
    "124": Better(400, LOUD + ": a tag without a type is refused"),
    "128": Better(400, REFUSED, same_state=True),
    "133": Better(200, LOUD + ": a dependency counts without features[].project too"),
    "137": Better(400, REFUSED, same_state=True),
    "139": Better(400, REFUSED, same_state=True),
    "140": Better(400, REFUSED, same_state=True),
    "145": Better(200, LOUD + ": a dependency of a flag that features does not list counts too"),
    "151": Better(400, REFUSED, same_state=True),
    "158": Better(400, REFUSED, same_state=True),
    "160": Better(400, "one flag switched twice, differently, is an error"),
    "161": Better(400, "one flag switched twice, differently, is an error"),
    "203": Better(200, "bodies of up to 64 MB are accepted"),
    "205": Better(200, "any API key with the permissions may import"),
    "214": Better(403, "missing permissions are told first"),
    "218": Better(200, "there are no change requests here"),
    "224": Better(404, "without the project, its flags are not looked at"),
    "233": Better(200, "bodies of up to 64 MB are accepted"),
    "235": Better(200, "the plan counts and names new flags alone, and tells of everything else at once too"),
    "236": Better(200, "a tag type that no tag uses is not created and needs no permission"),
    "238": Better(200, "an unknown project is an error of validate too: the import would fail"),
    "239": Better(200, "an unknown environment is an error of validate too: the import would fail"),
    "247": Better(200, "an archived parent is an error of validate too: the import would fail"),
    "256": Better(400, UNKNOWN),
    "258": Better(400, UNKNOWN),
    "260": Better(400, UNKNOWN),
    "281": Better(400, "chains and cycles inside a file are refused"),
    "284": Better(
        200, "featureEnvironments[].strategies is an older place that counts where no newer one speaks"
    ),
    "290": Better(200, "the limit of flags of an installation is a setting; it is not 1 here"),
    "293": Better(200, "bodies of up to 64 MB are accepted"),
    "295": Better(200, "features[].lastSeenAt of older exports is read and not stored"),
    "299": Better(400, REFUSED, same_state=True),
}
