"""Sessions of ``requests`` that connect to allowed addresses alone, whatever a name leads to."""

import os
import socket

import requests
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool

from flagadmin.core.http.bounded_answers import (
    BoundedAdapter,
    EncryptedHeadersInTime,
    HeadersInTime,
    bound,
)
from flagadmin.core.http.outside import connect

CONNECT_SECONDS = 10.0


class _Connection(HeadersInTime):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 80, encrypted=False, timeout=CONNECT_SECONDS)


class _EncryptedConnection(EncryptedHeadersInTime):
    def _new_conn(self) -> socket.socket:
        return connect(self._dns_host, self.port or 443, encrypted=True, timeout=CONNECT_SECONDS)


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _EncryptedPool(HTTPSConnectionPool):
    ConnectionCls = _EncryptedConnection


class _CheckedAdapter(BoundedAdapter):
    pools = {"http": _Pool, "https": _EncryptedPool}


def checked_session() -> requests.Session:
    """Uses no proxy: it would connect on its own."""
    session = bound(requests.Session(), _CheckedAdapter)
    session.trust_env = False
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    return session
