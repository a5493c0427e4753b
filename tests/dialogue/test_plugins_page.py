"""The examples that docs/plugins.md gives are plugins that load and work."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.dialogue_projects import AGENT, caller, skill

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")

SETTINGS = next(block for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "plugins:" in block)


async def test_the_examples_of_the_page_work(tmp_path: Path) -> None:
    hours, shops, brief = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    files = {
        "agent.yml": f"{AGENT}workflow: brief\n{SETTINGS}",
        "memory.yml": "shop_moved: {type: bool, mutable: true}\n",
        "skills/shop/skill.md": skill("Help.", description="The shop.", import_tools="[is_open]"),
        "plugins/opening_hours.py": hours,
        "plugins/our_shops.py": shops,
        "plugins/brief/__init__.py": brief,
    }
    bench = caller(tmp_path, files, ["Hello."])
    assert bench.agent.problems == ()
    assert (await bench.says("hi")).messages == ["Hello."]
    assert "We have 3 shops in Wells." in str(bench.model.requests[0].messages[0].content)
    assert "is_open" in bench.agent.project.skills["shop"].tools
    memory = bench.conversation.state.memory
    declared = memory.schema.resolve("shop_moved", None)
    assert declared is not None
    from voice_agent.dialogue.memory import Writer

    memory.write(declared, True, Writer.STEP)
    assert (await bench.says("where are you")).messages == ["We have moved to 5 Mill Lane."]
