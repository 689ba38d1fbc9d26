"""Runs the real nginx with deploy/nginx.conf: on ports of 127.0.0.1, in a folder of its own, with a certificate of its own."""

import http.client
import os
import re
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.live_server import PATIENCE, wait_until
from tests.support.paths import ROOT
from tests.support.programs import program

MAIN = """
{user}
daemon off;
worker_processes 1;
pid nginx.pid;
error_log error.log;
events {{ worker_connections 512; }}
http {{
    log_format asked '$upstream_cache_status $upstream_status';
    access_log access.log asked;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    include flagadmin.conf;
}}
"""


SERVER = re.compile(r" +server 127\.0\.0\.1:8000 (.*);\n")


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Nginx:
    """A running nginx."""

    folder: Path
    port: int

    def connect(self) -> http.client.HTTPSConnection:
        unverified = ssl._create_unverified_context()
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=unverified)

    def get(self, path: str, **headers: str) -> Answer:
        with closing(self.connect()) as connection:
            connection.request("GET", path, headers={"Accept-Encoding": "identity"} | headers)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())

    def requests(self) -> Counter[str]:
        """How many requests had which cache status and, of those that went to flagadmin, which answer."""
        return Counter((self.folder / "access.log").read_text().splitlines())


def configure(
    folder: Path, port: int, upstreams: Sequence[int], instead: Mapping[str, str] | None = None
) -> Path:
    """Writes the configuration of deploy/ with these ports, and other directives ``instead`` of some of its own.

    Returns the path of the main file.
    """
    folder.mkdir()
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    make_certificate(key, certificate)
    text = (ROOT / "deploy" / "nginx.conf").read_text()
    changes = {
        "listen 443 ": f"listen 127.0.0.1:{port} ",
        "/etc/ssl/flags.example.org.pem": str(certificate),
        "/etc/ssl/private/flags.example.org.key": str(key),
        "/var/lib/nginx/flagadmin": str(folder / "cache"),
    }
    for standard, own in (changes | dict(instead or {})).items():
        assert text.count(standard) == 1, standard
        text = text.replace(standard, own)
    text, groups = SERVER.subn(
        lambda line: "".join(f"    server 127.0.0.1:{at} {line[1]};\n" for at in upstreams), text
    )
    assert groups == 3
    (folder / "flagadmin.conf").write_text(text)
    main = folder / "nginx.conf"
    # As root, nginx's workers would be another account, which may not write here.
    main.write_text(MAIN.format(user="user root;" if os.geteuid() == 0 else ""))
    return main


def nginx(main: Path, *arguments: str) -> list[str]:
    return [program("nginx"), "-p", str(main.parent), "-e", "error.log", "-c", str(main), *arguments]


@contextmanager
def running_nginx(
    folder: Path, port: int, upstreams: Sequence[int], instead: Mapping[str, str] | None = None
) -> Iterator[Nginx]:
    """An nginx that answers at this port, until the context ends."""
    main = configure(folder, port, upstreams, instead)
    with subprocess.Popen(nginx(main), stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until(lambda: (folder / "nginx.pid").exists() or process.poll() is not None)
            assert process.poll() is None, process.stderr and process.stderr.read()
            yield Nginx(folder, port)
        finally:
            process.terminate()


def make_certificate(key: Path, certificate: Path) -> None:
    """Writes a certificate that nobody has signed, and its key."""
    options = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=test"]
    command = [program("openssl"), "req", *options, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
