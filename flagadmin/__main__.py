"""`python -m flagadmin`: the command line."""

from flagadmin.command import main

if __name__ == "__main__":
    main()
