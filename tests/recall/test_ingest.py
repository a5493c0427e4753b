"""Files and folders are learnt anew where they have changed, and the command says what came of each."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.recall.test_memories import make
from tests.support.dialogue_projects import write_project
from voice_agent.cli import cli
from voice_agent.cli.learn import show_report
from voice_agent.recall.entries import Episode, Who
from voice_agent.recall.ingest import Report, learn_files
from voice_agent.recall.memories import Memories


@pytest.fixture
async def memories() -> AsyncIterator[Memories]:
    made = make()
    await made.open(wanted=True)
    yield made
    await made.aclose()


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / "docs" / name.replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


async def test_only_what_has_changed_is_learnt_again(tmp_path: Path, memories: Memories) -> None:
    write(tmp_path, a_md="router", b_txt="bill", c_html="<p>phone</p>", d_exe="no")
    first = await learn_files(memories.library, tmp_path, [tmp_path / "docs"])
    assert [name for name, _ in first.learnt] == ["docs/a.md", "docs/b.txt", "docs/c.html"]
    write(tmp_path, b_txt="bill and more")
    again = await learn_files(memories.library, tmp_path, [tmp_path / "docs"])
    assert ([name for name, _ in again.learnt], again.unchanged) == (["docs/b.txt"], ["docs/a.md", "docs/c.html"])


async def test_what_is_gone_is_unlearnt_only_if_asked_and_only_below_what_was_named(
    tmp_path: Path, memories: Memories
) -> None:
    write(tmp_path, a_md="router", b_md="bill")
    (tmp_path / "other.md").write_text("elsewhere")
    await learn_files(memories.library, tmp_path, [tmp_path / "docs", tmp_path / "other.md"])
    (tmp_path / "docs" / "a.md").unlink()
    (tmp_path / "other.md").unlink()
    assert (await learn_files(memories.library, tmp_path, [tmp_path / "docs"])).removed == []
    assert (await learn_files(memories.library, tmp_path, [tmp_path / "docs"], prune=True)).removed == ["docs/a.md"]
    assert [source.name for source in await memories.library.sources()] == ["docs/b.md", "other.md"]
    gone = await learn_files(memories.library, tmp_path, [tmp_path / "other.md"], prune=True)
    assert (gone.removed, gone.failed) == (["other.md"], [])


async def test_a_bad_file_is_named_and_the_others_are_learnt(tmp_path: Path, memories: Memories) -> None:
    write(tmp_path, a_md="router", b_pdf="%PDF-1.4 rubbish", z_md="bill")
    (tmp_path / "docs" / "c.txt").write_bytes(b"\x00" * 100)
    (tmp_path / "docs" / ".hidden.md").write_text("secret")
    (tmp_path / "docs" / "link.md").symlink_to(tmp_path / "nowhere.md")
    named = [tmp_path / "docs", tmp_path / "missing.md", tmp_path / "docs" / "x.exe"]
    named[-1].write_text("x")
    report = await learn_files(memories.library, tmp_path, named)
    assert [name for name, _ in report.learnt] == ["docs/a.md", "docs/z.md"]
    reasons = dict(report.failed)
    assert "no PDF that can be read" in reasons["docs/b.pdf"]
    assert "binary" in reasons["docs/c.txt"]
    assert "no such file" in reasons["missing.md"]
    assert "not learnt" in reasons["docs/x.exe"]
    assert len(reasons) == 5


async def test_files_of_other_types_are_counted_by_type_unless_they_were_named(
    tmp_path: Path, memories: Memories, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, a_md="router", b_docx="x", c_DOCX="x", README="x", e_xlsx="x")
    (tmp_path / "docs" / ".hidden.docx").write_text("x")
    (tmp_path / "docs" / "link.txt").symlink_to("e.xlsx")
    docs = tmp_path / "docs"
    report = await learn_files(memories.library, tmp_path, [docs, docs, docs / "e.xlsx"])
    assert report.skipped == {".docx": 2, "": 1}
    assert [name for name, _ in report.failed] == ["docs/e.xlsx"]
    assert len(report.learnt) == 2, "a link's own name tells how it is read"
    show_report(report)
    assert "\nskipped 3 files of types that are not learnt: 2 .docx, 1 without a suffix\n" in capsys.readouterr().out


async def test_the_line_about_skipped_files_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_report(Report(skipped=Counter({f".kind{n:02}": 1 for n in range(30)} | {".\x1b[2J\n": 2})))
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("skipped")]
    assert line.endswith(": 2 .?[2J?, " + ", ".join(f"1 .kind{n:02}" for n in range(7)) + ", others")
    show_report(Report())
    assert "skipped" not in capsys.readouterr().out


async def test_a_changed_file_that_cannot_be_read_any_more_keeps_what_was_known(
    tmp_path: Path, memories: Memories
) -> None:
    write(tmp_path, a_md="router words")
    await learn_files(memories.library, tmp_path, [tmp_path / "docs"])
    (tmp_path / "docs" / "a.md").write_bytes(b"\x00" * 100)
    assert (await learn_files(memories.library, tmp_path, [tmp_path / "docs"])).failed
    assert [one.text for one in await memories.search("router", (), 3) or ()] == ["router words"]


@pytest.mark.models
def test_the_commands_learn_list_and_forget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    root = write_project(tmp_path / "project", {})
    write(root, a_md="# Lights\nThe light turns green.", b_pdf="rubbish")
    run = CliRunner()
    learnt = run.invoke(cli, ["learn", str(root / "docs"), "--project", str(root), "--list"])
    assert learnt.exit_code == 1, learnt.output
    for part in ("1 texts, 1 passages", "docs/b.pdf", "no PDF that can be read"):
        assert part in learnt.output
    (index,) = (tmp_path / "data").rglob("*.recall")
    again = run.invoke(cli, ["learn", str(root / "docs" / "a.md"), "--project", str(root), "--list"])
    assert again.exit_code == 0, again.output
    assert "docs/a.md  1 passages" in again.output
    assert index.stat().st_mode & 0o777 == 0o600
    forgotten = run.invoke(cli, ["forget", "--caller", "ann", "--project", str(root)])
    assert forgotten.output.strip() == "0 conversations and 0 recalled exchanges were deleted."
    assert run.invoke(cli, ["forget", "--project", str(root)]).exit_code == 2
    assert run.invoke(cli, ["learn", "--project", str(root)]).exit_code == 2


async def test_forgetting_a_caller_reaches_store_and_recall(tmp_path: Path) -> None:
    from voice_agent.recall.index import Forget
    from voice_agent.service.recall import RecallKeeper
    from voice_agent.store.memory import MemoryStore

    memories, store = make(episodic={"enabled": True}, threshold=0.0), MemoryStore()
    await memories.open()
    keeper = RecallKeeper(memories, store, lambda: pytest.fail("not asked"), 30.0, clock=lambda: 100 * 86_400.0)
    for caller, conversation in (("ann", "c1"), ("bob", "c2"), ("ann", "c3")):
        record = {"conversation_id": conversation, "user_id": caller, "sequence": 0, "event_id": conversation, "x": {}}
        store.append(conversation, [record])
        await memories.keep([Episode(Who(caller, conversation), "t", 99 * 86_400.0, "router", "")])
    assert await keeper.forget(Forget(caller="ann")) == {"conversations": 2, "exchanges": 2}
    assert await store.load("c1") is None
    assert await memories.conversations() == ["c2"]
    await store.delete("c2")
    assert await keeper.sweep() == 1
    await memories.keep([Episode(Who("eve", "c9"), "t", 10 * 86_400.0, "router", "")])
    store.append("c9", [{"conversation_id": "c9", "sequence": 0, "event_id": "e", "x": {}}])
    assert await keeper.sweep() == 1, "older than the store keeps conversations"
    await memories.aclose()


async def test_what_waits_to_be_kept_is_forgotten_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from voice_agent.recall.index import Forget
    from voice_agent.service.recall import RecallKeeper
    from voice_agent.store.memory import MemoryStore

    memories = make(episodic={"enabled": True}, threshold=0.0)
    await memories.open()
    keeper = RecallKeeper(memories, MemoryStore(), lambda: pytest.fail("not asked"), 0)
    begun, keep = asyncio.Event(), memories.keep

    async def slowly(episodes: Sequence[Episode]) -> None:
        begun.set()
        await asyncio.sleep(0.05)
        await keep(episodes)

    def said(caller: str, turn: str) -> None:
        record = {"conversation_id": f"c-{caller}", "user_id": caller}
        keeper.on_event({**record, "user": {"turn_id": turn, "text": "router", "kind": "speech"}})
        keeper.on_event({**record, "bot": {"turn_id": turn, "text": "Yes."}})

    monkeypatch.setattr(memories, "keep", slowly)
    said("ann", "1")
    said("bob", "1")
    writing = asyncio.create_task(keeper.flush(5))
    await begun.wait()
    said("ann", "2")
    said("bob", "2")
    # Of hers one exchange is being written, and one waits.
    assert (await keeper.forget(Forget(caller="ann")))["exchanges"] == 2
    await writing
    await keeper.flush(5)
    assert await memories.conversations() == ["c-bob"]
    await memories.aclose()


async def test_pipes_links_to_themselves_and_names_that_are_no_text_stop_nothing(
    tmp_path: Path, memories: Memories
) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "loop.md").symlink_to("loop.md")
    await asyncio.to_thread((tmp_path / os.fsdecode(b"n\xff.md")).write_text, "A word.")
    async with asyncio.timeout(10):
        report = await learn_files(memories.library, tmp_path, [tmp_path])
    assert [name for name, _ in report.learnt] == ["n\ufffd.md"]
    assert dict(report.failed).keys() == {"pipe.md", "loop.md"}
    assert (await learn_files(memories.library, tmp_path, [tmp_path])).unchanged == ["n\ufffd.md"]
