"""Which browser, and how it is started: without a sandbox of its own and without any request of its own."""

import shutil

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
QUIET = [
    "--no-sandbox", "--headless", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    # A third less work: processes for each context and page, and JavaScript's own threads, are for more cores. Another
    # fifth: no page lives long enough to gain from optimized code.
    "--renderer-process-limit=1", "--js-flags=--single-threaded --no-opt",
]  # fmt: skip
