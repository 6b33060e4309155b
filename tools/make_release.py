"""Collect a release in dist/, beside the source distribution and wheels that `make wheel` has put there.

Usage: make_release.py [FOLDER]             default: dist
       make_release.py --results FILE       the archive of results alone

Adds the documentation's site, the pages of results with all raw samples that the history has, the notes, an SBOM
(SPDX 2.3, by file) and SHA256SUMS. Archives of one commit are the same to the byte whenever they are made: files in
order, with the commit's time and nobody's name. What differs from the commit, and a version that files don't agree
on, is an error.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import check_release

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build" / "docs-site"
RESULTS = ROOT / "docs" / "results"
LICENSE = "Apache-2.0"


class ReleaseError(Exception):
    """What keeps this tree from being released, in one line."""


def git(*words: str, root: Path = ROOT) -> bytes:
    """Return what git prints. Raises ReleaseError."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, check=False)
    if done.returncode != 0:
        why = done.stderr.decode(errors="replace").strip()
        raise ReleaseError(f"git {words[0]}: {why}; a release is made in a clone of the repository")
    return done.stdout


def commit_time() -> int:
    """Return when the commit was made, seconds since the epoch. Raises ReleaseError where files differ from it."""
    if changed := git("status", "--porcelain", "--untracked-files=no").decode().splitlines():
        raise ReleaseError(f"{changed[0][3:]}: differs from the commit, as do {len(changed) - 1} others; commit first")
    return int(git("log", "-1", "--format=%ct"))


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the files of `folder` by their names below it."""
    paths = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def files_ever_in(folder: Path, root: Path = ROOT) -> dict[str, bytes]:
    """Return also the files of `folder` that were removed, as they were last: superseded pages, raw samples.

    Raises ReleaseError where the clone is shallow.
    """
    if git("rev-parse", "--is-shallow-repository", root=root).strip() == b"true":
        raise ReleaseError("this clone has no history, where raw samples are; git fetch --unshallow first")
    below = folder.relative_to(root).as_posix()
    options = ("--no-renames", "--diff-filter=D", "--name-only", "-z", "--format=%x01%H")
    commits = git("log", *options, "--", below, root=root).decode().split("\x01")[1:]
    found = files_of(folder)
    for entry in commits:  # the newest first
        commit, *names = entry.replace("\n", "\0").split("\0")
        for name in filter(None, names):
            found.setdefault(name.removeprefix(f"{below}/"), git("show", f"{commit}^:{name}", root=root))
    return found


def results_ever(results: Path = RESULTS, root: Path = ROOT) -> dict[str, bytes]:
    """Return the files of the archive of results: pages, samples, and in `studies` the studies that made them."""
    studies = files_ever_in(root / "studies", root)
    return files_ever_in(results, root) | {f"studies/{name}": data for name, data in studies.items()}


def archive(files: Mapping[str, bytes], name: str, when: int) -> bytes:
    """Return a .tar.gz of `files`, below a folder `name`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for file, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mtime, entry.mode = len(data), when, 0o644
            tar.addfile(entry, io.BytesIO(data))
    return gzip.compress(packed.getvalue(), mtime=when)


def notes(changelog: str, version: str) -> str:
    """Return the changelog's part of a version. Raises ReleaseError where it has none."""
    match = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## \[|\Z)", changelog, re.DOTALL | re.MULTILINE)
    if match is None or not match[1].strip():
        raise ReleaseError(f"CHANGELOG.md: nothing stands below [{version}]; write what a user notices")
    return f"# palmette {version}\n\n{match[1].strip()}\n"


def members(path: Path) -> Iterable[tuple[str, bytes]]:
    """Return the files inside of a wheel or an archive, by name."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            yield from ((name, wheel.read(name)) for name in sorted(wheel.namelist()) if not name.endswith("/"))
        return
    with tarfile.open(path) as tar:
        for member in sorted((m for m in tar.getmembers() if m.isfile()), key=lambda m: m.name):
            file = tar.extractfile(member)
            if file is not None:
                yield member.name, file.read()


def requirements(pyproject: str) -> list[str]:
    """Return the names of what the package requires when it runs."""
    match = re.search(r"^dependencies = \[(.*?)^\]", pyproject, re.DOTALL | re.MULTILINE)
    return re.findall(r'"([A-Za-z][\w.-]*)', match[1]) if match else []


def sbom(version: str, packages: list[Path], when: int) -> dict[str, Any]:
    """Return the bill of materials: each package with its files and their SHA-256, and what it requires."""
    files: list[dict[str, Any]] = []
    described: list[dict[str, Any]] = []
    relations: list[dict[str, str]] = []

    def relate(one: str, kind: str, other: str) -> None:
        relations.append({"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other})

    needed = requirements((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for number, path in enumerate(packages):
        identity = f"SPDXRef-Package-{number}"
        described.append(_package(identity, "palmette", version, LICENSE, path))
        relate("SPDXRef-DOCUMENT", "DESCRIBES", identity)
        for name, data in members(path):
            file = f"SPDXRef-File-{number}-{len(files)}"
            files.append(
                {"SPDXID": file, "fileName": f"./{path.name}/{name}", "checksums": [_sum(data)],
                 "licenseConcluded": LICENSE, "copyrightText": "NOASSERTION"}
            )  # fmt: skip
            relate(identity, "CONTAINS", file)
        for name in needed:
            relate(identity, "DEPENDS_ON", f"SPDXRef-Required-{name}")
    described += [_package(f"SPDXRef-Required-{name}", name, None, "NOASSERTION") for name in needed]
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"palmette-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/palmette-{version}-"
        + hashlib.sha256("".join(_sum(path.read_bytes())["checksumValue"] for path in packages).encode()).hexdigest(),
        "creationInfo": {
            "created": datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": ["Tool: palmette-make_release"],
        },
        "packages": described, "files": files, "relationships": relations,
    }  # fmt: skip


def _package(identity: str, name: str, version: str | None, license_: str, path: Path | None = None) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "SPDXID": identity, "name": name, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
        "licenseConcluded": license_, "licenseDeclared": license_, "copyrightText": "NOASSERTION",
    }  # fmt: skip
    if version is not None:
        entry["versionInfo"] = version
    if path is not None:
        entry |= {"packageFileName": path.name, "checksums": [_sum(path.read_bytes())]}
    return entry


def _sum(data: bytes) -> dict[str, str]:
    return {"algorithm": "SHA256", "checksumValue": hashlib.sha256(data).hexdigest()}


def collect(folder: Path, when: int, site: Path = SITE, results: Path = RESULTS) -> list[Path]:
    """Write what belongs to a release besides its packages; return all of its files. Raises ReleaseError."""
    if lines := check_release.mistakes():
        raise ReleaseError(lines[0])
    version = check_release.found(ROOT, *check_release.SOURCE)
    packages = sorted([*folder.glob(f"palmette-{version}.tar.gz"), *folder.glob(f"palmette-{version}-*.whl")])
    if {path.suffix for path in packages} != {".gz", ".whl"}:
        raise ReleaseError(f"{folder}: no source distribution and wheel of {version}; make wheel first")
    if not (site / "index.html").is_file():
        raise ReleaseError(f"{site}: the documentation's site isn't there; make docs first")
    name = f"palmette-{version}"
    written = {
        f"{name}-docs.tar.gz": archive(files_of(site), f"{name}-docs", when),
        f"{name}-results.tar.gz": archive(results_ever(results), f"{name}-results", when),
        f"{name}-notes.md": notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version).encode(),
        f"{name}.spdx.json": (json.dumps(sbom(version, packages, when), indent=1) + "\n").encode(),
    }
    for file, data in written.items():
        (folder / file).write_bytes(data)
    files = sorted([*packages, *(folder / file for file in written)])
    sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8")
    return [*files, folder / "SHA256SUMS"]


def main(arguments: list[str]) -> int:
    """Collect a release and list it."""
    alone = arguments[:1] == ["--results"]
    if len(arguments) != 2 if alone else len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else ROOT / "dist"
    try:
        if alone:
            files = [Path(arguments[1])]
            files[0].write_bytes(archive(results_ever(), "palmette-results", commit_time()))
        else:
            files = collect(folder, commit_time())
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    for path in files:
        print(f"{path.stat().st_size:>12,}  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
