"""Build the documentation's site: build/docs-site, from docs/ and what it links to.

Usage: build_docs.py [stage]      `stage` writes build/docs-source only, and needs no mkdocs

Pages are written for forges: links are relative to the sources. What lies outside of docs/ and is linked goes into
`project/` of the site. The order of pages is that of docs/guide/README.md. A link that leads nowhere and a page that no
list names are errors, as are warnings of mkdocs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import generate_reference
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BUILD = ROOT / "build"
SOURCE = BUILD / "docs-source"
SITE = BUILD / "docs-site"
VENV = BUILD / "docs-venv"
LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
IMAGE = re.compile(r'(?P<before><(?:img|a)\b[^>]*\b(?:src|href)=["\'])(?P<target>[^"\']+)')
ITEM = re.compile(r"(?:[-*]|\d+\.) ")
NOT_PAGES = ("requirements.txt",)
listings: list[str] = []
"""Pages that are lists of a folder's files: linked, and in no tree."""


class DocsError(Exception):
    """A page is wrong; the message names it."""


def place(file: Path) -> Path:
    """Return where a file of the project is in the site's sources."""
    if file == ROOT / "README.md":
        return Path("project/palmette.md")
    if file.is_relative_to(DOCS):
        return file.relative_to(DOCS)
    # A README would become the front page of the tree's section.
    inside = file.parent.with_suffix(".md") if file.name == "README.md" else file
    return Path("project") / inside.relative_to(ROOT)


def turned(file: Path, follow: Callable[[Path], None]) -> str:
    """Return the text of a page for the site: its links turned, `follow` called with each file that it links to."""

    def target(text: str) -> str:
        if re.match(r"[a-z]+:|#", text):
            return text
        path, mark, anchor = text.partition("#")
        aim = (file.parent / path).resolve()
        if aim.is_dir():
            if not (aim / "README.md").is_file():
                listing(aim)
                return os.path.relpath(place(aim) / "README.md", place(file).parent)
            aim /= "README.md"
        if not aim.is_file() or not aim.is_relative_to(ROOT):
            raise DocsError(f"{file.relative_to(ROOT)}: {text} leads nowhere; correct the link")
        follow(aim)
        return os.path.relpath(place(aim), place(file).parent) + mark + anchor

    lines: list[str] = []
    fence = False
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            fence = not fence
        elif not fence and not line.startswith("    "):
            # Forges let a list follow a line of text; Markdown of old wants an empty line.
            if ITEM.match(line) and lines and lines[-1].strip() and not re.match(r"\s|[-*] |\d+\. ", lines[-1]):
                lines.append("")
            if line.startswith("|"):
                line = re.sub(r"`[^`]*`", lambda found: found[0].replace(r"\|", "|"), line)
        if not fence:
            line = LINK.sub(lambda found: f"]({target(found['target'])})", line)
            line = IMAGE.sub(lambda found: found["before"] + target(found["target"]), line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def listing(folder: Path) -> None:
    """Write a page for a folder without one: its files, to be opened as they are."""
    page = SOURCE / place(folder) / "README.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    files = sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    lines = [f"# {folder.relative_to(ROOT)}", ""]
    for file in files:
        name = str(file.relative_to(folder))
        copy = page.parent / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        lines.append(f"- [{name}]({name})")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    listings.append(str(page.relative_to(SOURCE)))


def stage() -> None:
    """Write the site's sources: docs/, the files that it links to, and the generated reference."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    waiting = [file for file in sorted(DOCS.rglob("*")) if file.is_file() and file.name not in NOT_PAGES]
    waiting.append(ROOT / "CHANGELOG.md")
    seen: set[Path] = set()

    def follow(file: Path) -> None:
        if file not in seen:
            waiting.append(file)

    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        copy = SOURCE / place(file)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if file.suffix == ".md":
            copy.write_text(turned(file, follow), encoding="utf-8")
        else:
            shutil.copyfile(file, copy)
    generate_reference.main([str(SOURCE / "reference")])


def title(page: str) -> str:
    """Return a page's first heading."""
    found = re.search(r"^# (.+)$", (SOURCE / page).read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise DocsError(f"{page}: no heading")
    return re.sub(r"[`\\]", "", found[1])


def linked(page: str, text: str) -> list[str]:
    """Return the pages that a text of `page` links to, in order."""
    found = (os.path.normpath(Path(page).parent / link["target"].partition("#")[0]) for link in LINK.finditer(text))
    return list(dict.fromkeys(one for one in found if one.endswith(".md") and (SOURCE / one).is_file()))


def navigation() -> list[Any]:
    """Return the site's tree: the sections of the guide's index, reference, comparison, results, decisions, project."""
    text = (SOURCE / "guide/README.md").read_text(encoding="utf-8")
    taken = {"index.md", "start.md", "guide/README.md", "comparison.md", *listings}

    def new(pages: list[str]) -> list[Any]:
        mine = [page for page in pages if page not in taken]
        taken.update(mine)
        return [{short(page): page} for page in mine]

    def below(folder: str, *, last_first: bool = False) -> list[Any]:
        found = [str(file.relative_to(SOURCE)) for file in (SOURCE / folder).rglob("*.md")]
        index = f"{folder}/README.md"
        pages = sorted((page for page in found if page != index), reverse=last_first)
        taken.add(index)
        return [index, *new(pages)]

    order: list[Any] = [{"Start": ["index.md", {"Five minutes": "start.md"}, {"All guides": "guide/README.md"}]}]
    order[0]["Start"].append({"Alternatives compared": "comparison.md"})
    lessons = (SOURCE / "tutorial/README.md").read_text(encoding="utf-8")
    taken.add("tutorial/README.md")
    order.append({"Tutorial": ["tutorial/README.md", *new(linked("tutorial/README.md", lessons))]})
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    keep = ("reference/", "results/", "decisions/")
    for section in sections:
        heading, _, body = section.partition("\n")
        pages = [page for page in linked("guide/README.md", body) if not page.startswith(keep)]
        order.append({heading: new(pages)})
    reference = below("reference/commands")
    tree: list[Any] = [{"Commands": reference}]
    tree += new(["reference/settings.md", "reference/c.md", "reference/cpp.md", "reference/python.md"])
    order += [{"Reference": ["reference/README.md", *tree, *below("reference")[1:]]}]
    order += [{"Results": below("results", last_first=True)}]
    project = new([str(file.relative_to(SOURCE)) for file in sorted((SOURCE / "project").rglob("*.md"))])
    order += [{"Project": [*project, {"Decisions": below("decisions")}]}]
    left = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.md")} - taken
    if left:
        raise DocsError(f"no list names {sorted(left)[0]}; link it in docs/guide/README.md")
    return order


def short(page: str) -> str:
    """Return a page's name in the tree."""
    name = title(page)
    if page.startswith("guide/"):
        command = re.search(r": palmette (.+)$", name)
        name = command[1] if command else name.partition(":")[0]
    if page.startswith("results/"):
        day = re.match(r"\d{4}-\d\d-\d\d", Path(page).name)
        name = re.sub(r", (?:\d+ November 2026|2026-\d\d-\d\d)$", "", name) + (f" ({day[0]})" if day else "")
    return name


def environment() -> Path:
    """Return mkdocs, installed where it isn't there with the versions of docs/requirements.txt."""
    wanted = (DOCS / "requirements.txt").read_text(encoding="utf-8")
    stamp = VENV / "requirements.txt"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        print("docs: mkdocs into build/docs-venv (half a minute the first time)", flush=True)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([VENV / "bin/pip", "install", *quiet, "-r", DOCS / "requirements.txt"], check=True)
        stamp.write_text(wanted, encoding="utf-8")
    return VENV / "bin/mkdocs"


def main(arguments: list[str]) -> int:
    """Stage the pages, and build the site."""
    if arguments not in ([], ["stage"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        stage()
        settings = {
            "INHERIT": str(ROOT / "mkdocs.yml"),
            "docs_dir": str(SOURCE),
            "site_dir": str(SITE),
            "nav": navigation(),
            "not_in_nav": "\n".join(f"/{page}" for page in set(listings)),
        }
    except DocsError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    written = BUILD / "mkdocs.yml"
    written.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8")
    if arguments == ["stage"]:
        return 0
    # Not with --quiet, which lets --strict count no warnings.
    done = subprocess.run(
        [environment(), "build", "--strict", "-f", written],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},  # material's news, not of our pages
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    said = [line for line in done.stdout.splitlines() if not line.startswith("INFO")]
    print("\n".join(said) if done.returncode else f"docs: {SITE.relative_to(ROOT)}/index.html")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
