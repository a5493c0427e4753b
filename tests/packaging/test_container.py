"""What can be known of the image without an engine that builds it."""

from __future__ import annotations

import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def instructions(name: str) -> list[str]:
    joined = DOCKERFILE.replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in joined.splitlines() if line.startswith(name + " ")]


def copied() -> list[str]:
    return [source for line in instructions("COPY") for source in line.split()[:-1]]


def test_the_dockerfile_satisfies_its_linter():
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent)) or "hadolint"
    linted = subprocess.run([hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_the_base_is_pinned_to_one_image():
    (base,) = instructions("FROM")
    assert re.fullmatch(r"python:3\.1[123]\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)


def test_the_service_does_not_run_as_root_and_is_watched():
    assert int(instructions("USER")[-1]) > 0
    assert "/readyz" in instructions("HEALTHCHECK")[0]
    assert instructions("EXPOSE") == ["8080"]
    assert '"0.0.0.0"' in instructions("CMD")[0]


def test_all_that_is_copied_exists_and_is_not_ignored():
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    for source in copied():
        assert (ROOT / source).exists(), source
        ignored = False
        for rule in rules:
            if fnmatch.fnmatch(source, rule.removeprefix("!")):
                ignored = not rule.startswith("!")
        assert not ignored, source


def test_the_whole_example_agent_is_copied():
    project = {"agent.yml", "integrations.yml", "memory.yml", "responses.yml", "skills", "references", "lib", "tools"}
    assert {name for name in project if (ROOT / name).exists()} <= set(copied())
    # Whatever else the example comes to need must be copied too: everything tracked is either known or copied.
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tops = {line.split("/")[0] for line in tracked.splitlines()}
    known = {
        ".ci",
        ".dockerignore",
        ".gitignore",
        "Dockerfile",
        "conversations",
        "docs",
        "examples",
        "scripts",
        "tests",
    }
    assert tops - known <= set(copied())
