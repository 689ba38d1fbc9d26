"""Repeated wrong passwords increase the waiting time, which the login page shows."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from flagadmin.core.errors import TooManyRequests
from groups.login.passwords import (
    FREE_ATTEMPTS_OF_ACCOUNT,
    FREE_ATTEMPTS_OF_ADDRESS,
    Attempt,
    count_attempt,
    forget_old_attempts,
)
from groups.models import LoginFailure
from tests.support.cast import make_user

PASSWORD = "correct horse battery"


pytestmark = pytest.mark.usefixtures("standing_clock")  # no wait is over before the next try


@pytest.fixture
def anna(db):
    return make_user("anna", email="anna@example.org", password=PASSWORD)


def guess(client, name="anna", password="guess", address="192.0.2.1"):
    return client.post("/login/", {"username": name, "password": password}, REMOTE_ADDR=address)


def wait_of(attempt, now):
    with pytest.raises(TooManyRequests) as caught:
        count_attempt(attempt, now=now)
    return int(caught.value.headers["Retry-After"])


def test_an_account_waits_after_five_failures(client, anna):
    for number in range(FREE_ATTEMPTS_OF_ACCOUNT):
        assert guess(client, address=f"192.0.2.{number}").status_code == 401
    response = guess(client, password=PASSWORD, address="192.0.2.200")
    assert response.status_code == 429
    assert response["Retry-After"] == "6"
    assert "Too many attempts. Wait 6 seconds" in response.text
    assert 'data-enable-after="6"' in response.text


def test_user_name_and_address_count_as_one_account(client, anna):
    for number in range(FREE_ATTEMPTS_OF_ACCOUNT):
        guess(client, name=("anna", "ANNA@example.org")[number % 2])
    assert guess(client, name="Anna").status_code == 429


def test_an_ip_address_waits_after_twenty_failures(client, anna):
    for number in range(FREE_ATTEMPTS_OF_ADDRESS):
        assert guess(client, name=f"guess-{number}").status_code == 401
    assert guess(client, password=PASSWORD).status_code == 429
    assert guess(client, password=PASSWORD, address="192.0.2.2").status_code == 302


def test_an_unknown_account_waits_as_a_known_one(client, anna):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
        assert guess(client, name="bertha").status_code == 401
    assert guess(client, name="bertha").status_code == 429


def test_a_success_resets_the_count(client, anna):
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT - 1):
        guess(client)
    assert guess(client, password=PASSWORD).status_code == 302
    assert not LoginFailure.objects.exists()


def test_waits_double_up_to_the_window(anna):
    attempt, now, waits = Attempt.of(anna, "anna", "192.0.2.1"), timezone.now(), []
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
        count_attempt(attempt, now=now)
    for _ in range(4):
        waits.append(wait_of(attempt, now))
        now += timedelta(seconds=waits[-1])
        count_attempt(attempt, now=now)
    assert waits == [6, 11, 21, 41]
    count_attempt(attempt, now=now + timedelta(minutes=15, seconds=1))


def test_a_throttled_attempt_does_not_lengthen_the_wait(anna):
    attempt, now = Attempt.of(anna, "anna", "192.0.2.1"), timezone.now()
    for _ in range(FREE_ATTEMPTS_OF_ACCOUNT):
        count_attempt(attempt, now=now)
    for seconds in range(5):
        assert wait_of(attempt, now + timedelta(seconds=seconds)) == 6 - seconds


def test_an_ipv6_network_counts_as_one_address():
    assert Attempt.of(None, "x", "2001:db8::1").address == Attempt.of(None, "x", "2001:db8::ffff:2").address
    assert Attempt.of(None, "x", "2001:db8::1").address != Attempt.of(None, "x", "2001:db8:0:1::1").address
    assert Attempt.of(None, "x", "::ffff:192.0.2.1").address == "192.0.2.1"


def test_behind_a_proxy_the_last_address_counts(client, anna, settings):
    settings.BEHIND_PROXY = True
    client.post(
        "/login/",
        {"username": "anna", "password": "x"},
        headers={"X-Forwarded-For": "203.0.113.9, 192.0.2.77"},
    )
    assert LoginFailure.objects.get().address == "192.0.2.77"


def test_old_tries_are_forgotten(anna):
    count_attempt(Attempt.of(anna, "anna", "192.0.2.1"), now=timezone.now() - timedelta(hours=1))
    count_attempt(Attempt.of(anna, "anna", "192.0.2.1"))
    forget_old_attempts()
    assert LoginFailure.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_parallel_attempts_do_not_bypass_the_limit():
    make_user("anna", password=PASSWORD)

    def one(number):
        try:
            return guess(Client(), address=f"192.0.2.{number}").status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(one, range(16)))
    assert statuses.count(401) == FREE_ATTEMPTS_OF_ACCOUNT
    assert statuses.count(429) == 16 - FREE_ATTEMPTS_OF_ACCOUNT
