#!/bin/sh
# get-chromium.sh: Chromium for the browser tests, where it is missing and we may install it. Never fails the build.
command -v chromium >/dev/null && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1
fi
command -v chromium >/dev/null || echo "Chromium is not installed: the browser tests of the report are skipped"
exit 0
