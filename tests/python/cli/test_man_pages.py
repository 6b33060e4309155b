"""The man pages that tools/generate_man.py writes, held against the commands themselves."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from programs import every_context

ROOT = Path(__file__).resolve().parents[3]
GENERATE = """
import json, sys
sys.path.insert(0, "tools")
before = set(sys.modules)
import generate_man
status = generate_man.main(sys.argv[1:])
real = [name for name in set(sys.modules) - before if type(sys.modules[name]).__name__ != "_Module"]
print(json.dumps(sorted({name.split(".")[0] for name in real} - set(sys.stdlib_module_names))))
sys.exit(status)
"""


def generate(folder: Path, **environment: str) -> str:
    """Write the pages, and return what the generator imported from outside the standard library."""
    inherited = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    done = subprocess.run(
        [sys.executable, "-c", GENERATE, folder], cwd=ROOT, env=inherited | environment, check=True, capture_output=True
    )
    return done.stdout.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the generator writes."""
    made = tmp_path_factory.mktemp("pages")
    generate(made, SOURCE_DATE_EPOCH="1000000000")
    return made


def read(page: str) -> str:
    """The words of a page, without its requests."""
    lines = (line for line in page.splitlines() if not re.match(r"\.(PP|TP|SH|nf|fi|TH)\b", line))
    text = re.sub(r"\\f[BIR]|\\&", "", " ".join(lines))
    for roff, plain in ((r"\-", "-"), (r"\(aq", "'"), (r"\(ga", "`"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\e", "\\")):
        text = text.replace(roff, plain)
    return " ".join(text.split())


def words(text: str) -> str:
    return " ".join(text.replace("\b", "").replace("`", "").split())


def test_every_command_has_a_page_with_its_help_and_each_option(folder: Path) -> None:
    for context in every_context():
        page = read((folder / "man1" / f"{context.command_path.replace(' ', '-')}.1").read_text())
        assert words(context.command.help or "") in page
        assert words((context.command.epilog or "").removeprefix("Example: ")) in page
        options = [option for option in context.command.get_params(context) if isinstance(option, click.Option)]
        assert len(options) > 0
        for option in options:
            names, sentence = option.get_help_record(context) or ("", "")
            assert f"{words(names)} {words(sentence)}".strip() in page, (context.command_path, names)


def test_the_pages_name_every_command_and_no_others(folder: Path) -> None:
    paths = {context.command_path.replace(" ", "-") for context in every_context()}
    assert {file.stem for file in (folder / "man1").iterdir()} == paths
    named = {
        name for page in (folder / "man1").iterdir() for name in re.findall(r"([a-z-]+)\(1\)", read(page.read_text()))
    }
    assert named == paths


def test_the_first_page_has_every_setting_with_its_sentence(folder: Path) -> None:
    page = read((folder / "man1/palmette.1").read_text())
    for setting in json.loads((ROOT / "python/palmette/settings.json").read_text())["settings"]:
        assert f"{setting['name']} {words(setting['help'])}" in page


@pytest.mark.parametrize(
    "line", [["man", "--warnings", "-l"], ["groff", "-man", "-ww", "-Tutf8"], ["mandoc", "-T", "lint", "-W", "warning"]]
)
def test_readers_of_man_pages_have_nothing_to_say(folder: Path, line: list[str]) -> None:
    if shutil.which(line[0]) is None:
        pytest.skip(f"{line[0]} is not installed")
    # man starts five programs a page, groff among them.
    pages = sorted((folder / "man1").glob("palmette-[dr]*" if line[0] == "man" else "*"))
    environment = os.environ | {"MANPAGER": "cat", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([*line, *pages], env=environment, check=False, capture_output=True, text=True)
    said = done.stderr + (done.stdout if line[0] == "mandoc" else "")
    assert (done.returncode, said) == (0, "")


def test_the_same_sources_give_the_same_files_with_click_alone(folder: Path, tmp_path: Path) -> None:
    assert json.loads(generate(tmp_path, SOURCE_DATE_EPOCH="1000000000")) == [
        *("click", "command_pages", "generate_man", "palmette", "palmette_lab")
    ]
    for file in folder.rglob("*.*"):
        assert (tmp_path / file.relative_to(folder)).read_bytes() == file.read_bytes()
    assert '"2001-09-09"' in (folder / "man1/palmette.1").read_text().splitlines()[0]
