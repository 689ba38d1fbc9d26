#!/bin/sh
# Makes .venv with everything in requirements/dev.txt. Needs Python 3.11 to 3.14: others lack packages that are built already.
# uv does it in an eighth of pip's time, so pip installs only uv, unless pip is set up for an index that uv does not know.
set -eu
cd "$(dirname "$0")/.."

if [ -L .venv ]; then
    echo ".venv is a link to an environment that something else looks after; nothing is installed."
    exit 0
fi

fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))'

find_python() {
    for name in python3 python3.13 python3.12 python3.11 python3.14; do
        if "$name" -c "$fits" 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    found=$(python3 --version 2>/dev/null || echo "no python3")
    echo "flagadmin needs Python 3.11, 3.12, 3.13 or 3.14; here is $found. Install one of them and run this again." >&2
    exit 1
}

if .venv/bin/python -c "$fits" 2>/dev/null; then
    python=.venv/bin/python
else
    python=$(find_python)
    rm -rf .venv
fi

echo "Installing flagadmin's packages in .venv: a quarter of a minute, or more with a slow network."

install_with() { # a uv
    "$1" pip install --quiet --compile-bytecode --python .venv/bin/python --require-hashes \
        --requirement requirements/dev.txt
}

if command -v uv >/dev/null; then
    [ -d .venv ] || uv venv --quiet --python "$python" .venv
    install_with uv
    exit 0
fi

make_venv() {
    # Debian's Python can lack ensurepip; what it leaves then is of no use.
    "$python" -m venv .venv >/dev/null 2>&1 && .venv/bin/python -m pip --version >/dev/null 2>&1 || {
        rm -rf .venv
        return 1
    }
}

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    python=$("$python" -c 'import sys; print(getattr(sys, "_base_executable", None) or sys.executable)')
    if ! make_venv; then
        package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
            apt-get update -qq
            DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package"
            make_venv
        else
            echo "Python's venv module is missing. On Debian and Ubuntu: sudo apt-get install $package" >&2
            echo "Then run this again. (With uv installed it is not needed.)" >&2
            exit 1
        fi
    fi
fi

# dev.txt names every package there is to install. Without --no-deps, older versions of pip resolve again and refuse
# a package that another asks for with an extra ("pydantic[email]") and that is pinned without it.
pip_install() { # a file of requirements
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement "$1"
}

install_with_own_uv() {
    ! .venv/bin/python -m pip config list | grep '[.]index-url=' >/dev/null || return 1
    # From its name to the first line that does not end in a backslash: its version and hashes.
    sed -n '/^uv==/,/[^\\]$/p' requirements/dev.txt >.venv/uv.txt
    pip_install .venv/uv.txt && install_with .venv/bin/uv
}

install_with_own_uv || pip_install requirements/dev.txt
