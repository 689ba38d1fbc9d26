"""Processes that record events, and that send them, until they are killed. They import nothing before Django is set up."""

import os
import threading


def use_database(name: str) -> None:
    """In a process of its own."""
    import django

    django.setup()
    from django.conf import settings
    from django.db import connections

    settings.DATABASES["default"]["NAME"] = name
    connections["default"].settings_dict["NAME"] = name


def write(database: str) -> None:
    """Records events, each in its transaction, until it is killed."""
    use_database(database)
    from django.db import transaction

    from flagadmin.core.audit.events import EventType
    from flagadmin.core.audit.record import Event, record
    from groups.access import Caller

    while True:
        with transaction.atomic():
            event = Event(type=EventType.FEATURE_CREATED, project="shop", feature=f"flag of {os.getpid()}")
            record(event, actor=Caller.system())


def send(database: str) -> None:
    """What a server does, with shorter pauses."""
    use_database(database)
    from django.conf import settings

    from integrations.deliveries import sender
    from tests.support.receiver import LOOPBACK

    settings.INTEGRATION_NETWORKS = LOOPBACK
    sender.PAUSE, sender.CLAIM_SECONDS, sender.MAX_TURN, sender.BATCH = 0.05, 1, 0.5, 10
    sender.run(threading.Event())
