"""The documentation's links and the site's tree, without the site: `make docs` builds that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def links(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/check_links.py."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import check_links

    return check_links


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """tools/build_docs.py, which writes into a folder of the test."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import build_docs

    def in_a_process_of_its_own(arguments: list[str]) -> int:
        # It puts stand-ins in the place of packages, which would stay for the tests after this one.
        return subprocess.run(
            [sys.executable, ROOT / "tools" / "generate_reference.py", *arguments], check=False
        ).returncode

    monkeypatch.setattr("build_docs.generate_reference.main", in_a_process_of_its_own)
    monkeypatch.setattr(build_docs, "SOURCE", tmp_path / "docs-source")
    monkeypatch.setattr(build_docs, "listings", [])
    return build_docs


def test_every_link_leads_somewhere(links: ModuleType) -> None:
    assert [line for file in links.documents() for line in links.broken(file)] == []


def test_links_to_nothing_are_found_and_anchors_that_are_set_are_known(
    links: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(links, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        '# A heading\n\n<a id="set"></a>\n\n[one](#a-heading) [two](#set) [three](other.md#set)\n'
        "[four](#none) [five](none.md)\n\n```\n[six](inside.md)\n```\n"
    )
    (tmp_path / "other.md").write_text('<a name="set"></a>\n')
    assert links.broken(page) == ["page.md:6: #none leads nowhere", "page.md:6: none.md leads nowhere"]


def test_every_page_is_in_the_sites_tree(site: ModuleType) -> None:
    site.stage()
    sections = [title for section in site.navigation() for title in section]
    assert sections[0] == "Start" and {"Reference", "Results", "Project"} <= set(sections)


def test_a_page_that_no_list_names_is_an_error(site: ModuleType) -> None:
    site.stage()
    (site.SOURCE / "guide" / "forgotten.md").write_text("# Forgotten\n")
    with pytest.raises(site.DocsError, match=r"no list names guide/forgotten.md"):
        site.navigation()
