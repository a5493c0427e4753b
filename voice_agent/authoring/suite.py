"""Runs conversation tests: finds them, decides which model answers, plays one after the other."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from voice_agent.authoring.conversation_reader import LocatedTest, find_files, project_of, read_tests
from voice_agent.authoring.player import Outcome, Status, play
from voice_agent.config_files import ProjectConfig, load_config
from voice_agent.diagnostics import Problem, ProjectError
from voice_agent.llm.factory import build_model
from voice_agent.llm.protocol import LanguageModel

EMBEDDED = "embedded"


@dataclass
class Suite:
    """The tests of one project."""

    root: Path
    config: ProjectConfig
    tests: list[LocatedTest] = field(default_factory=list)


def find_suites(paths: Iterable[Path], *, wanted: str = "", live: bool = False) -> list[Suite]:
    """Read the tests that ``paths`` name: projects, folders in them, or single files.

    Args:
        wanted: Only tests with this text in their name, file name or tags.
        live: The project's model will be asked, so its key must be there.

    Raises:
        ProjectError: A project or a test file has errors; all of them are in it.
        RemediableError: A path belongs to no project.
    """
    problems: list[Problem] = []
    suites: dict[Path, Suite] = {}
    for path in paths:
        root = project_of(path)
        files = [path] if path.is_file() else find_files(root)
        if path.is_dir() and path.resolve() != root:
            files = [file for file in files if file.resolve().is_relative_to(path.resolve())]
        tests = [test for file in files for test in read_tests(file, problems) if _is_wanted(test, wanted)]
        if root not in suites:
            suites[root] = Suite(root, _load_config(root, live or any(t.test.model == "live" for t in tests)))
        suites[root].tests += tests
    if problems:
        raise ProjectError(problems)
    return list(suites.values())


def _is_wanted(located: LocatedTest, wanted: str) -> bool:
    texts = (located.test.name, located.path.name, *located.test.tags)
    return any(wanted.casefold() in text.casefold() for text in texts)


class _AnyVariable(Mapping[str, str]):
    """An environment in which every variable is set: scripted tests need no keys."""

    def __getitem__(self, name: str) -> str:
        return os.environ.get(name, "unset")

    def __contains__(self, name: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(os.environ)

    def __len__(self) -> int:
        return len(os.environ)


def _load_config(root: Path, live: bool) -> ProjectConfig:
    try:
        return load_config(root)
    except ProjectError as fault:
        if live or any(not problem.id.endswith(("missing_key", "missing_variable")) for problem in fault.problems):
            raise
        return load_config(root, _AnyVariable())


class LiveModel:
    """The project's own model, made when the first test needs it.

    Its idea of "today" is the day of the test that is on, where the test has one.
    """

    def __init__(self, config: ProjectConfig) -> None:
        self._options = config.integrations.llm
        self._model: LanguageModel | None = None
        self._today: date | None = None

    @property
    def is_free(self) -> bool:
        """It needs no key and no network."""
        return self._options.provider == EMBEDDED

    async def for_test(self, located: LocatedTest) -> LanguageModel:
        """Return the model for one test.

        Raises:
            RemediableError: A missing package, key or model.
        """
        self._today = None if located.test.now is None else located.test.now.date()
        if self._model is None:
            self._model = build_model(self._options, today=lambda: self._today or date.today())
            await self._model.warm_up()
        return self._model

    async def aclose(self) -> None:
        if self._model is not None:
            await self._model.aclose()


Started = Callable[[LocatedTest], None]


async def run_suites(
    suites: Sequence[Suite], *, live: bool = False, started: Started = lambda test: None
) -> AsyncGenerator[Outcome, None]:
    """Play every test, yielding each outcome as it comes.

    Args:
        live: Ask the project's own model even where there is a script.
        started: Told of each test before it is played.

    Raises:
        ProjectError: A project cannot be loaded.
        RemediableError: The model that a test needs is not there.
    """
    for suite in suites:
        async with AsyncExitStack() as stack:
            model = LiveModel(suite.config)
            stack.push_async_callback(model.aclose)
            for test in suite.tests:
                started(test)
                yield await _run_one(test, suite.config, model, live)


async def _run_one(located: LocatedTest, config: ProjectConfig, model: LiveModel, live: bool) -> Outcome:
    test = located.test
    if test.skip:
        return Outcome(located, Status.SKIPPED, reason=test.skip)
    if test.model == "live" and not (live or model.is_free):
        return Outcome(located, Status.SKIPPED, reason="asks a model that costs money; run it with --live")
    asks_live = test.model == "live" or (live and test.model != "scripted")
    return await play(located, config, await model.for_test(located) if asks_live else None)


async def collect(suites: Sequence[Suite], *, live: bool = False) -> list[Outcome]:
    """Play every test and return all outcomes."""
    async with aclosing(run_suites(suites, live=live)) as outcomes:
        return [outcome async for outcome in outcomes]


__all__ = ["Suite", "collect", "find_suites", "run_suites"]
