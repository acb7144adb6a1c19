#!/bin/sh
# get-chromium.sh: Chromium for the browser tests, where it is missing and we may install it. Never fails the build.
# The headless shell comes first, since it draws no windows; the whole browser will do as well.
found() { command -v chromium-headless-shell >/dev/null || command -v chromium >/dev/null; }
found && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq >/dev/null 2>&1
    for package in chromium-headless-shell chromium; do
        found || apt-get install -y -qq --no-install-recommends "$package" >/dev/null 2>&1
    done
fi
found || echo "Chromium is not installed: the browser tests of the report are skipped"
exit 0
