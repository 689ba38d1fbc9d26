"""Attacks on a server that logs everything, knows a lying identity provider, and has a token for /metrics."""

from collections.abc import Iterator

from tests.attack import entrances, nginx_cache, resources, sign_on, upkeep
from tests.attack.installation import installation
from tests.attack.lying_provider import lying_provider
from tests.attack.result import Result


def attacks(seconds: float) -> Iterator[Result]:
    with lying_provider() as liar:
        variables = {
            "FLAGADMIN_LOG_LEVEL": "INFO",
            "FLAGADMIN_ACCESS_LOG": "1",
            "FLAGADMIN_METRICS_TOKEN": upkeep.METRICS_TOKEN,
            **sign_on.options(liar),
        }
        with installation(**variables) as target:
            yield from nginx_cache.attacks(target)
            yield from upkeep.attacks(target)
            quiet = resources.quiet_p99(target, 5)
            yield from sign_on.attacks(target, liar, seconds / 2, quiet)
            yield from entrances.attacks(target, seconds / 2)
