"""Write the reference of commands, settings, C, C++ and Python, in Markdown, from the code.

Usage: generate_reference.py FOLDER
    FOLDER/commands/README.md, FOLDER/commands/palmette-NAME.md: a page a command, its subcommands in it
    FOLDER/settings.md: the variables, from python/palmette/settings.json
    FOLDER/c.md, FOLDER/cpp.md: from the comments of palmette.h and palmette.hpp
    FOLDER/python.md: which modules mkdocstrings documents when the site is built (tools/build_docs.py)

What the commands say comes from tools/command_pages.py, as the man pages do.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from command_pages import FILES, PROGRAMS, ROOT, STATUS, Page, pages, paragraphs, settings

from palmette.cli import stand_ins

HEADERS = ROOT / "src/palmette/interpose"
MODULES = {
    "palmette.compose.composition": "Communication made of multicasts, reductions and fences",
    "palmette.compose.factoring": "What a composition is factored over, and how",
    "palmette.compose.running": "Plans on a communicator",
    "palmette.compose.sparse": "Sums of irregular, overlapping footprints",
    "palmette.compose.exchange": "Messages to ranks that don't expect them",
    "palmette.compose.communicators": "Communicators of a level's groups, and in an order",
    "palmette.regions": "Regions of a program, recorded exactly",
    "palmette.topology.file": "topology.json",
    "palmette.topology.placement": "Which rank sits where",
    "palmette_lab.lab": "The emulated cluster",
    "palmette.analysis": "A recording, opened once",
    "palmette.record.reading": "Recordings of MPI calls",
}
"""The modules that guides show, which docs/reference/compatibility.md promises to keep."""


def escaped(text: str) -> str:
    """Return text whose characters mean nothing in Markdown; what stands between backquotes stays code."""
    parts = enumerate(re.split(r"(`[^`]+`)", text))
    return "".join(part if at % 2 else re.sub(r"([\\*_<>\[\]|#])", r"\\\1", part) for at, part in parts)


def code(text: str) -> str:
    """Return indented lines."""
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())


def option(names: str) -> str:
    """Return an option's names and its value as code, which break between the two."""
    found = re.match(r"(?P<names>-[^\s,]+(?:(?:, | / )-[^\s,]+)*)(?: (?P<value>.+))?$", names)
    if found is None:
        return f"`{names}`"
    shown = re.sub(r"-[^\s,]+", lambda name: f"`{name[0]}`", found["names"])
    return f"{shown} `{found['value']}`" if found["value"] else shown


def table(head: tuple[str, str], rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of two columns, the first in code."""
    lines = [f"| `{name}` | {escaped(sentence)} |" for name, sentence in rows]
    return "\n".join([f"| {head[0]} | {head[1]} |", "|---|---|", *lines])


def section(page: Page, level: int) -> Iterator[str]:
    """Yield the parts of a command, below a heading of the given level."""
    yield f"{'#' * level} {page.path}"
    yield code(f"{page.path} {page.usage}")
    for text, stays in paragraphs(page.help):
        yield code(text) if stays else escaped(text)
    if page.example:
        yield "Example:"
        yield code(page.example)
    if page.options:
        rows = [f"| {option(names)} | {escaped(sentence)} |" for names, sentence in page.options]
        yield "\n".join(["| option | what it does |", "|---|---|", *rows])


def command_pages() -> dict[str, str]:
    """Return the text of each page by its file's name: palmette's commands have one each, other programs one."""
    found = list(pages())
    texts = {}
    parts = [*section(found[0], 1), "## Commands"]
    rows = [(f"palmette {name}", sentence) for name, sentence in found[0].subcommands.items()]
    rows += [(page.path, page.sentence) for page in found if page.path in PROGRAMS[1:]]
    lines = [f"| [`{path}`]({path.replace(' ', '-')}.md) | {escaped(sentence)} |" for path, sentence in rows]
    parts += ["\n".join(["| command | |", "|---|---|", *lines])]
    parts += ["## Exit status", table(("status", "meaning"), STATUS)]
    parts += ["`palmette run`, `palmette-lab run` and `palmette-lab exec` end with the status of what they ran."]
    parts += ["## Files", table(("file", "what"), FILES)]
    texts["README.md"] = joined(parts)
    for path, _ in rows:
        below = (one for one in found if one.path == path or one.path.startswith(f"{path} "))
        parts = [part for one in below for part in section(one, 1 if one.path == path else 2)]
        texts[f"{path.replace(' ', '-')}.md"] = joined(
            [*parts, "[All commands](README.md), [settings](../settings.md)"]
        )
    return texts


def joined(parts: Iterable[str]) -> str:
    """Return a page of its parts."""
    return "\n\n".join(parts) + "\n"


def settings_page() -> str:
    """Return the page of variables."""
    rows = []
    for one in settings():
        default = f"`{one['default']}`" if one["default"] else ""
        rows.append(f"| `{one['name']}` | {escaped(one['help'])} | {default} | {one['kind']} |")
    return joined(
        [
            "# Settings",
            "Environment variables of a job, which options of [`palmette run`](commands/palmette-run.md) set too."
            " `palmette settings` prints them with the values that they have; one that is misspelt is told.",
            "\n".join(["| variable | what it does | default | value |", "|---|---|---|---|", *rows]),
        ]
    )


def prose(comment: str) -> str:
    """Return a comment's text: indented lines as code, all else as prose."""
    parts: list[str] = []
    for block in re.split(r"\n\s*\n", comment.strip("\n")):
        lines = block.splitlines()
        if all(line.startswith("    ") for line in lines):
            parts.append(block)
        else:
            parts.append(escaped(" ".join(line.strip() for line in lines)))
    return "\n\n".join(parts)


def plain(comment: str) -> str:
    """Return a C comment's lines without its marks."""
    lines = comment.removeprefix("/*").removesuffix("*/").splitlines()
    return "\n".join(re.sub(r"^ ?\* ?", "", line) if at else line.strip() for at, line in enumerate(lines)).rstrip()


def c_page() -> str:
    """Return what palmette.h declares, each with the comment above it."""
    text = (HEADERS / "palmette.h").read_text(encoding="utf-8")
    parts = ["# C: palmette.h"]
    comments = re.findall(r"/\*.*?\*/", text, re.DOTALL)
    parts.append(prose(plain(comments[0])))
    parts.append("The [guide](../guide/compose.md) explains the terms, with examples.")
    body = text[text.index('extern "C" {') :]
    handles = re.findall(r"^typedef .*;$", body, re.MULTILINE)
    parts += ["## Handles", "```c\n{}\n```".format("\n".join(handles))]
    declaration = re.compile(r"(?P<comment>/\*.*?\*/\n)?(?P<code>^(?:int|void|const char)\*? .*?;)$", re.M | re.S)
    for found in declaration.finditer(body):
        name = re.search(r"(palmette_\w+)(?=\(|;)", found["code"])
        if name is None:
            continue
        parts += [f"## {name[1]}", f"```c\n{found['code']}\n```"]
        if found["comment"]:
            parts.append(prose(plain(found["comment"].strip())))
    return joined(parts)


def without_bodies(text: str) -> str:
    """Return C++ declarations: functions' bodies and lists of initializers are left out."""
    out: list[str] = []
    at, depth = 0, 0
    while at < len(text):
        char = text[at]
        if char == "{" and depth == 0 and re.search(r"\)\s*(const)?\s*(noexcept)?\s*(:[^;]*)?$", "".join(out)[-400:]):
            declared = re.sub(r"\)\s*:\s.*", ")", "".join(out).rsplit(";", 1)[-1], flags=re.DOTALL)
            rest = "".join(out)
            out = [rest[: rest.rindex(";") + 1] if ";" in rest else "", declared.rstrip(), ";"]
            depth = 1
        elif depth:
            depth += {"{": 1, "}": -1}.get(char, 0)
        else:
            out.append(char)
        at += 1
    return "".join(out)


def cpp_page() -> str:
    """Return the classes of palmette.hpp, each with its comment and public members."""
    text = (HEADERS / "palmette.hpp").read_text(encoding="utf-8")
    opening = re.match(r"(//.*\n)+", text)
    assert opening is not None
    parts = ["# C++: palmette.hpp", prose(re.sub(r"^// ?", "", opening[0], flags=re.MULTILINE))]
    kinds = re.compile(
        r"(?P<comment>(?:^/// [^\n]*\n)+)"
        r"(?P<code>^using [^;]*;|^(?:template <[^\n]*>\n)?(?:class|struct) \w+(?! *;).*?^\};)",
        re.M | re.S,
    )
    for found in kinds.finditer(text):
        name = re.search(r"^(?:class|struct|using) (\w+)", found["code"], re.M)
        assert name is not None
        public = re.sub(r"\n  private:.*?(?=^\};)", "\n", found["code"], flags=re.DOTALL | re.MULTILINE)
        head, brace, members = public.partition("{")
        shown = head + brace + without_bodies(members) if head.startswith("class") else public
        parts += [f"## {name[1]}", prose(re.sub(r"^/// ?", "", found["comment"], flags=re.MULTILINE))]
        shown = re.sub(r"\n+(?=\};)", "\n", shown.rstrip())
        parts.append(f"```cpp\n{shown}\n```")
    return joined(parts)


def python_page() -> str:
    """Return the page that mkdocstrings fills."""
    parts = [
        "# Python",
        "The modules that the guides show; others may change in any version"
        " ([what stays compatible](compatibility.md)). All are typed.",
    ]
    for module, title in MODULES.items():
        parts += [f"## {title}", f"::: {module}"]
    return joined(parts)


def main(arguments: list[str]) -> int:
    """Write all pages below the folder."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    stand_ins.install("palmette._core")
    folder = Path(arguments[0])
    texts = {f"commands/{name}": text for name, text in command_pages().items()}
    texts |= {"settings.md": settings_page(), "c.md": c_page(), "cpp.md": cpp_page(), "python.md": python_page()}
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
