# Sourced by the other scripts: make the project's environment in .venv, install one extra, and
# put it on PATH. Installs again only when pyproject.toml or the extra changed.
#   source scripts/environment.sh EXTRA
extra=$1
venv=${VOICE_AGENT_VENV:-$PWD/.venv}
stamp="$venv/.installed-$extra"

usable() { # can this interpreter run the project and make environments?
    "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

find_python() {
    local name
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3 /usr/bin/python3; do
        if command -v "$name" >/dev/null && usable "$name"; then
            echo "$name"
            return
        fi
    done
    return 1
}

if [ ! -x "$venv/bin/python" ]; then
    if ! python=$(find_python) && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3 python3-venv >/dev/null
        python=$(find_python) || true
    fi
    if [ -z "${python:-}" ]; then
        echo "No Python 3.11, 3.12 or 3.13 with venv was found. Install one (Debian: apt-get install python3-venv)" \
            "or name it: PYTHON=/path/to/python3.11" >&2
        exit 2
    fi
    "$python" -m venv "$venv"
fi
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
    echo "Installing voice-agent[$extra] into $venv (a few minutes the first time) …"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extra]"
    touch "$stamp"
fi
export PATH="$venv/bin:$PATH"
