#!/usr/bin/env python
"""Django's command line for flagadmin."""

from flagadmin.__main__ import main

if __name__ == "__main__":
    main()
