"""A database of somebody else's, reached by DATABASE_URL, restarts while imports run."""

from collections.abc import Iterator

from tests.attack.installation import installation
from tests.attack.kills import interrupted_imports
from tests.attack.result import Result
from tests.support.replication import application_url, one_server


def attacks(seconds: float, seed: int) -> Iterator[Result]:
    with (
        one_server() as database,
        installation(DATABASE_URL=application_url(database), SECRET_KEY="x" * 60) as target,
    ):
        name = "restarts of an external database"
        yield interrupted_imports(target, name, lambda *_: database.restart(), seconds, seed)
