# Sourced by the other scripts: make the project's environment in .venv, install one extra, and
# put it on PATH. Installs again only when pyproject.toml or the extra changed.
#   source scripts/environment.sh EXTRA
extra=$1
venv=${VOICE_AGENT_VENV:-.venv}
stamp="$venv/.installed-$extra"
if [ ! -x "$venv/bin/python" ]; then
    python=$(command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
    "$python" -m venv "$venv"
fi
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ]; then
    echo "Installing voice-agent[$extra] into $venv (a few minutes the first time) …"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$extra]"
    touch "$stamp"
fi
PATH="$PWD/$venv/bin:$PATH"
case "$venv" in /*) PATH="$venv/bin:$PATH" ;; esac
export PATH
