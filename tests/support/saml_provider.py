"""Auth0's SAML identity provider in a process of its own (``tests/clients/saml-provider``), and answers that we sign."""

import base64
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from lxml import etree

from tests.support.live_server import PATIENCE, reserved_port
from tests.support.node_packages import installed
from tests.support.programs import program


@dataclass(frozen=True)
class Signer:
    """A key with a certificate for it. Both are PEM."""

    key: bytes
    certificate: bytes

    @classmethod
    def new(cls, *, bits: int = 2048, days: int = 3_650) -> "Signer":
        key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "provider.example")])
        begins = datetime.now(UTC) - timedelta(days=365)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begins)
        builder = builder.not_valid_after(datetime.now(UTC) + timedelta(days=days))
        pem = serialization.Encoding.PEM
        return cls(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
            builder.sign(key, hashes.SHA256()).public_bytes(pem),
        )


@dataclass(frozen=True)
class SamlProvider:
    url: str
    signer: Signer

    @property
    def issuer(self) -> str:
        return f"{self.url}/metadata"

    def know(self, account: str, **attributes: Any) -> None:
        """From now on, these are the attributes of an account. Its name id is its name."""
        requests.put(f"{self.url}/accounts/{account}", json=attributes, timeout=PATIENCE).raise_for_status()

    def behave(self, **options: Any) -> None:
        """What `samlp.auth` takes, until it is called again."""
        requests.put(f"{self.url}/options", json=options, timeout=PATIENCE).raise_for_status()

    def answer(self, url: str, name: str) -> dict[str, str]:
        """Opens the URL that flagadmin redirects to and logs in. Returns the form to send to flagadmin."""
        page = requests.get(url, {"name": name}, timeout=PATIENCE)
        assert page.ok, page.text
        fields = dict(re.findall(r'name="(SAMLResponse|RelayState)"\s+value="([^"]*)"', page.text))
        return fields | {"to": re.findall(r'action="([^"]*)"', page.text)[0]}


@contextmanager
def saml_provider(folder: Path) -> Iterator[SamlProvider]:
    """Runs the provider until the context ends. ``folder`` is for its keys. Skips without Node."""
    node, client, signer = program("node"), installed("saml-provider"), Signer.new()
    (folder / "key.pem").write_bytes(signer.key)
    (folder / "certificate.pem").write_bytes(signer.certificate)
    with reserved_port() as port:
        command = [node, "serve.mjs", str(port), str(folder / "key.pem"), str(folder / "certificate.pem")]
        with subprocess.Popen(
            command, cwd=client, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == b"ready\n"
                yield SamlProvider(f"http://localhost:{port}", signer)
            finally:
                process.kill()


def request_of(url: str) -> tuple[str, etree._Element]:
    """The relay state and the request in a URL of the provider."""
    import zlib

    query = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
    return query["RelayState"], etree.fromstring(zlib.decompress(base64.b64decode(query["SAMLRequest"]), -15))
