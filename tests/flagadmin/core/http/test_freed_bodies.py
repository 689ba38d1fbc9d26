"""What a request has sent does not stay in memory until garbage is collected."""

import gc
from io import BytesIO

import pytest
from django.test.client import ClientHandler

pytestmark = pytest.mark.django_db
BODY = b'["' + b"x" * 900_000 + b'"]'


def send(path: str, key: str, content_type: str) -> int:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": path,
        "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80",
        "wsgi.input": BytesIO(BODY),
        "CONTENT_LENGTH": str(len(BODY)),
        "CONTENT_TYPE": content_type,
        "HTTP_AUTHORIZATION": key,
    }
    return ClientHandler()(environ).status_code


def live_bodies() -> int:
    streams = [thing for thing in gc.get_objects() if type(thing) is BytesIO and not thing.closed]
    return sum(stream.getbuffer().nbytes > 500_000 for stream in streams)


@pytest.mark.parametrize(
    ("path", "content_type", "status"),
    [
        ("/api/admin/features-batch/export", "application/json", 400),
        ("/api/admin/nowhere", "application/json", 404),
        ("/login/", "application/x-www-form-urlencoded", 403),  # no CSRF token
        ("/login/", "text/plain", 403),
    ],
)
def test_a_body_is_freed_with_its_response(people, api, path, content_type, status):
    key = api["admin"]._credentials["HTTP_AUTHORIZATION"]
    gc.collect()
    gc.disable()
    try:
        before = live_bodies()
        assert send(path, key, content_type) == status
        assert live_bodies() == before
    finally:
        gc.enable()
