"""Sessions of ``requests`` that connect to allowed addresses alone, whatever a name leads to."""

import os
import socket
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from flagadmin.core.http.outside import connect

CONNECT_SECONDS = 10.0


class _Connection(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 80, encrypted=False, timeout=CONNECT_SECONDS)


class _EncryptedConnection(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 443, encrypted=True, timeout=CONNECT_SECONDS)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _EncryptedConnection


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _EncryptedPool}


def checked_session() -> requests.Session:
    """Uses no proxy: it would connect on its own."""
    session = requests.Session()
    session.trust_env = False
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    for scheme in ("http://", "https://"):
        session.mount(scheme, _Adapter(max_retries=0))
    return session
