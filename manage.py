#!/usr/bin/env python
"""Django's command line for flagadmin."""

from flagadmin.command import main

if __name__ == "__main__":
    main()
