"""Pages in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palmette.record.page.write import render

from . import synthetic
from .browser import Browser, browser, find_browser

MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    "small": synthetic.document,
    "many": synthetic.many,
    "profile": lambda: synthetic.document(kind="profile"),
}


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no browser here: apt-get install chromium")
    with browser(program, tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page: small, many or profile."""
    made: dict[str, Path] = {}

    def page(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("pages") / f"{name}.html"
            made[name].write_text(render(MAKERS[name]()), encoding="utf-8")
        return made[name]

    return page
