from flagadmin.client.main import COMMANDS
from flagadmin.management.client_command import OfClient


class Command(OfClient):
    client = COMMANDS["references"]
    help = client.help
