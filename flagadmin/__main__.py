"""`flagadmin` and `python -m flagadmin`: the command line."""

import gc
import sys

from flagadmin import client


def main() -> None:
    """Runs the client and the relay without Django, which takes longer to load and more memory than they do."""
    if sys.argv[1:2] == ["relay"]:
        gc.disable()  # until everything is loaded; `settle` enables it again
        from relay.main import main as run_relay

        run_relay(sys.argv[2:])
        return
    if sys.argv[1:2] and sys.argv[1] in client.NAMES:
        from flagadmin.client.main import run

        sys.exit(run(sys.argv[1:]))
    from flagadmin.command import main as run_django

    run_django()


if __name__ == "__main__":
    main()
