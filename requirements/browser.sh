#!/bin/sh
# Installs a browser for the browser tests, where that can be done without asking. Fails for nobody.
# Debian's chromium-headless-shell is Chromium without windows, a third of the work for each page; any other will do.
set -u

has() { command -v "$1" >/dev/null; }
install() { DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y -qq --no-install-recommends "$1"; }

has chromium-headless-shell && exit 0
if [ "$(id -u)" = 0 ] && has apt-get; then
    timeout 120 apt-get update -qq
    install chromium-headless-shell && exit 0
fi
for name in chromium chromium-browser google-chrome; do
    has "$name" && exit 0
done
if [ "$(id -u)" = 0 ] && has apt-get; then
    install chromium
else
    echo "Chromium is not installed: the browser tests will be skipped. On Debian: sudo apt-get install chromium"
fi
exit 0
