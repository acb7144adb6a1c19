#!/bin/sh
# make-venv.sh PYTHON FOLDER: a virtual environment with pip in it.
# Debian's python3 comes without ensurepip; where we may, we install the package that brings it.
set -eu
python=$1
folder=$2
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
    else
        echo "$python cannot make virtual environments; install python3-venv first (apt install python3-venv)" >&2
        exit 1
    fi
fi
exec "$python" -m venv "$folder"
