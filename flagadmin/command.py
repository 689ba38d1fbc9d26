"""The command line: `flagadmin` where it is installed as a package, `manage.py` in a checkout."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "flagadmin.settings")
    execute_from_command_line(sys.argv)
