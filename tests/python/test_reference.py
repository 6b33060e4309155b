"""The reference that the site has: every command, option, setting and function is in it, and every page in the tree."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from programs import every_context

ROOT = Path(__file__).resolve().parents[2]
STAGE = """
import sys
sys.path.insert(0, "tools")
from pathlib import Path
import build_docs
build_docs.BUILD = Path(sys.argv[1])
build_docs.SOURCE = build_docs.BUILD / "docs-source"
sys.exit(build_docs.main(["stage"]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's sources."""
    folder = tmp_path_factory.mktemp("docs")
    done = subprocess.run([sys.executable, "-c", STAGE, folder], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_command_and_option_is_there(built: Path) -> None:
    for context in every_context():
        command, words = context.command, context.command_path.split()
        of_palmette = words[0] == "palmette"
        if words == ["palmette"]:
            continue
        file = "-".join(words[:2]) if of_palmette else words[0]
        page = (built / f"docs-source/reference/commands/{file}.md").read_text(encoding="utf-8")
        heading = f"\n{'#' * min(2, len(words) - of_palmette)} {' '.join(words)}\n"
        assert heading in f"\n{page}", words
        section = re.split(r"\n#+ palmette", f"\n{page}".split(heading)[1])[0]
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert re.search(rf"\| [^|]*`{re.escape(option.opts[0])}`", section), (words, option.opts)


def test_every_setting_is_there(built: Path) -> None:
    page = (built / "docs-source/reference/settings.md").read_text(encoding="utf-8")
    names = [one["name"] for one in json.loads((ROOT / "python/palmette/settings.json").read_text())["settings"]]
    assert names
    for name in names:
        assert f"| `{name}` |" in page


def test_every_function_and_class_of_the_headers_is_there(built: Path) -> None:
    folder = ROOT / "src/palmette/interpose"
    functions = set(
        re.findall(r"\b(palmette_\w+)\(", re.sub(r"/\*.*?\*/", "", (folder / "palmette.h").read_text(), flags=re.S))
    )
    headings = set(re.findall(r"^## (palmette_\w+)$", (built / "docs-source/reference/c.md").read_text(), re.MULTILINE))
    assert functions == headings
    classes = set(re.findall(r"^(?:class|struct) (\w+)", (folder / "palmette.hpp").read_text(), re.MULTILINE))
    shown = set(re.findall(r"^## (\w+)$", (built / "docs-source/reference/cpp.md").read_text(), re.MULTILINE))
    assert classes <= shown
    members = (built / "docs-source/reference/cpp.md").read_text()
    assert "Run bind(const std::vector<void*>& buffers) const;" in members
    assert "private" not in members


def test_modules_that_guides_import_are_in_the_python_page(built: Path) -> None:
    page = (built / "docs-source/reference/python.md").read_text(encoding="utf-8")
    guides = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "docs/guide").glob("*.md"))
    for module in re.findall(r"^ *from (palmette(?:\.\w+)+) import", guides, re.MULTILINE):
        assert re.search(rf"^::: {re.escape(module)}(\.\w+)*$", page, re.MULTILINE), module


def test_the_tree_has_the_guides_in_the_order_of_their_index(built: Path) -> None:
    tree = yaml.safe_load((built / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    names = [next(iter(section)) for section in tree]
    index = (ROOT / "docs/guide/README.md").read_text(encoding="utf-8")
    paths = re.findall(r"^## (.+)$", index, re.MULTILINE)
    assert len(paths) >= 3
    assert names == ["Start", "Tutorial", *paths, "Reference", "Results", "Project"]
    pages = re.findall(r"guide/[\w-]+\.md", json.dumps(tree))
    assert sorted(set(pages)) == sorted(f"guide/{file.name}" for file in (ROOT / "docs/guide").glob("*.md"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("guide/new.md", "# New", "no list names guide/new.md"),
        ("guide/run.md", "# Run\n\n[a](b.md)", "docs/guide/run.md: b.md leads nowhere"),
        ("guide/run.md", "# Run", ""),
    ],
)
def test_a_page_that_no_list_names_and_a_link_to_nowhere_are_told(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    made = ("settings", "c", "cpp", "python", "commands/README")
    pages = (
        "index",
        "start",
        "comparison",
        "guide/run",
        "tutorial/README",
        "results/README",
        "decisions/README",
        "reference/README",
    )
    texts = {f"{page}.md": "# Page\n" for page in (*pages, *(f"reference/{page}" for page in made))}
    texts["guide/README.md"] = "# Guides\n\n## Run\n\n[run](run.md)\n"
    for page, content in (texts | {name: text}).items():
        (tmp_path / "docs" / page).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "docs" / page).write_text(content, encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n", encoding="utf-8")
    here = """
build_docs.generate_reference.main = lambda _: 0
build_docs.ROOT, build_docs.DOCS = build_docs.BUILD, build_docs.BUILD / "docs"
sys.exit("""
    script = STAGE.replace("sys.exit(", here)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if said else 0), done.stderr
    assert said in done.stderr
