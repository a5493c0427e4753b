"""Callers' voices: flite, out of Debian packages that need not be installed. Other voices than the agent's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.support.debian import package_file
from voice_agent.audio.wav import read_wav_16k


@cache
def said(text: str, voice: str = "slt") -> NDArray[np.int16]:
    """Return ``text`` as 16 kHz samples in the voice ``slt`` (a woman's) or ``rms`` (a man's)."""
    with tempfile.TemporaryDirectory() as work:
        wav = Path(work) / "said.wav"
        program, libraries = _program()
        command = [program, "-voice", voice, "-t", text, "-o", str(wav)]
        subprocess.run(command, check=True, capture_output=True, timeout=30, env=os.environ | libraries)
        return np.frombuffer(read_wav_16k(wav), np.int16)


@cache
def _program() -> tuple[str, dict[str, str]]:
    installed = shutil.which("flite")
    if installed:
        return installed, {}
    (program,) = package_file("flite", "usr/bin/flite")
    library = package_file("libflite1", "usr/lib/*/libflite.so.*")[0]
    return str(program), {"LD_LIBRARY_PATH": str(library.parent)}
