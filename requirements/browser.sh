#!/bin/sh
# Installs Chromium for the browser tests, where that can be done without asking. Fails for nobody.
set -u

for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
else
    echo "Chromium is not installed: the browser tests will be skipped. On Debian: sudo apt-get install chromium"
fi
exit 0
