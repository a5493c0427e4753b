"""Scripts in `spoken/`: a call with the real voice, detector and recogniser, and callers who are really heard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interactions.spoken import SCRIPTS, faults, load, play
from tests.support import inline_pool
from tests.support.virtual_time import virtual_time

pytestmark = pytest.mark.models


@pytest.fixture(scope="module", autouse=True)
def _voice_of_this_module() -> None:
    inline_pool.renew_voice()


@virtual_time
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
async def test_a_spoken_script_does_what_it_says(path: Path) -> None:
    script = load(path)
    story = await play(
        script, voice=inline_pool.voice(), recognizer=inline_pool.recognizer(), detector=inline_pool.detector()
    )
    assert faults(script, story) == [], story
