"""A strict relay serves its own tokens and what they cover."""

from pathlib import Path
from typing import Any

import orjson
import pytest

from flagadmin.core.errors import AuthenticationRequired, ServiceUnavailable
from relay.storage import Storage
from relay.tokens import Answer, Tokens, UpstreamFailed
from tests.support.event_loop import run
from tests.support.relay import BACKEND, OTHER, WEB, WIDE
from tests.support.upstream import make_token

VALID = {
    BACKEND: make_token(BACKEND, "client", "shop"),
    WEB: make_token(WEB, "frontend", "shop"),
    WIDE: make_token(WIDE, "client", "*"),
    OTHER: make_token(OTHER, "frontend", "shop", environment="production"),
}


class Asked:
    """What the upstream says of tokens."""

    def __init__(self) -> None:
        self.is_away = False
        self.valid = dict(VALID)

    async def ask(self, method: str, path: str, *, body: Any = None, **_: Any) -> Answer:
        if self.is_away:
            raise UpstreamFailed("away")
        tokens = [self.valid[secret] for secret in body["tokens"] if secret in self.valid]
        return Answer(200, {}, orjson.dumps({"tokens": tokens}))


@pytest.fixture
def storage(tmp_path: Path) -> Any:
    storage = Storage(tmp_path)
    yield storage
    storage.close()


def test_what_its_tokens_cover_is_served(storage: Storage) -> None:
    tokens = Tokens(storage, Asked().ask, covering=(BACKEND,))

    async def work() -> None:
        await tokens.ask_about([BACKEND])
        assert (await tokens.find(WEB)).secret == WEB
        for secret in (WIDE, OTHER, "shop:development.nobody-knows-it"):
            with pytest.raises(AuthenticationRequired, match="its own tokens cover"):
                await tokens.find(secret)

    run(work)
    assert len(tokens) == 2


def test_nobody_is_refused_before_its_own_tokens_are_known(storage: Storage) -> None:
    upstream = Asked()
    upstream.is_away = True
    tokens = Tokens(storage, upstream.ask, covering=(BACKEND,))
    with pytest.raises(ServiceUnavailable):
        run(lambda: tokens.find(WIDE))


def test_what_it_kept_before_it_was_strict_is_dropped(storage: Storage) -> None:
    run(lambda: Tokens(storage, Asked().ask).ask_about(list(VALID)))
    assert len(Tokens(storage, Asked().ask)) == len(VALID)
    strict = Tokens(storage, Asked().ask, covering=(BACKEND,))
    assert {token.secret for token in strict.all()} == {BACKEND, WEB}


def test_what_a_revoked_token_covered_ends_with_it(storage: Storage) -> None:
    upstream = Asked()
    tokens = Tokens(storage, upstream.ask, covering=(BACKEND,))

    async def work() -> None:
        await tokens.ask_about([BACKEND, WEB])
        del upstream.valid[BACKEND]
        await tokens.check_all()

    run(work)
    assert not tokens.all()
