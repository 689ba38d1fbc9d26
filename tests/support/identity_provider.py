"""A certified OpenID Connect provider in a process of its own (``tests/clients/oidc-provider``), and its people's browser."""

import re
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import requests

from tests.support.live_server import PATIENCE, reserved_port
from tests.support.node_packages import installed
from tests.support.programs import program

CALLBACK = "/login/sso/callback/"


@dataclass(frozen=True)
class IdentityProvider:
    issuer: str

    def know(self, account: str, **claims: Any) -> None:
        """From now on, these are the claims of an account. Its subject is its name."""
        requests.put(f"{self.issuer}/accounts/{account}", json=claims, timeout=PATIENCE).raise_for_status()

    def answer(
        self, url: str, name: str = "", *, cancel: bool = False, browser: requests.Session | None = None
    ) -> str:
        """Opens the URL that flagadmin redirects to and logs in. Returns the URL that leads back to flagadmin."""
        with nullcontext(browser) if browser else requests.Session() as browser:
            form = browser.get(url, timeout=PATIENCE)
            assert 'name="name"' in form.text, form.text
            answered = {"cancel": "1"} if cancel else {"name": name}
            left = browser.post(form.url, answered, allow_redirects=False, timeout=PATIENCE)
            while (address := left.headers["Location"]).startswith(("/", self.issuer)):
                address = address if address.startswith("http") else self.issuer + address
                left = browser.get(address, allow_redirects=False, timeout=PATIENCE)
            return address

    def log_out(self, browser: requests.Session) -> None:
        """Ends the browser's session at the provider, which then tells flagadmin."""
        form = browser.get(f"{self.issuer}/session/end", timeout=PATIENCE)
        form_secret = re.search(r'name="xsrf" value="([^"]+)"', form.text)
        assert form_secret, form.text
        sent = {"xsrf": form_secret[1], "logout": "yes"}
        browser.post(f"{self.issuer}/session/end/confirm", sent, timeout=PATIENCE).raise_for_status()


@contextmanager
def identity_provider(*origins: str) -> Iterator[IdentityProvider]:
    """Runs the provider on 127.0.0.1 until the context ends, for flagadmin at these origins. Skips without Node."""
    node, folder = program("node"), installed("oidc-provider")
    with reserved_port() as port:
        command = [node, "serve.mjs", str(port), *(origin + CALLBACK for origin in origins)]
        with subprocess.Popen(
            command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            try:
                assert process.stdout is not None
                ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
                line = process.stdout.readline() if ready else ""
                assert line == "ready\n", line
                yield IdentityProvider(f"http://127.0.0.1:{port}")
            finally:
                process.kill()
