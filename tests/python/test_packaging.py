"""What stands around a release: versions, recipes, workflows. Nothing is built."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/check_release.py."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import check_release

    return check_release


@pytest.fixture
def tree(release: ModuleType, tmp_path: Path) -> Path:
    """A copy of the files that name the version."""
    for file, _ in (release.SOURCE, release.HEADER, *release.PLACES):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def test_every_file_names_the_version_of_cmakelists(release: ModuleType) -> None:
    assert release.mistakes() == []


def test_a_raised_version_is_missed_in_every_other_file(release: ModuleType, tree: Path) -> None:
    lists = tree / "CMakeLists.txt"
    lists.write_text(re.sub(r"(palmette VERSION )[\d.]+", r"\g<1>7.8.9", lists.read_text()))
    lines = release.mistakes(tree)
    assert {line.split(":")[0] for line in lines} == {file for file, _ in (release.HEADER, *release.PLACES)}
    assert all("7.8" in line for line in lines)


def test_a_release_needs_its_tag_and_a_dated_heading(release: ModuleType, tree: Path) -> None:
    version = release.found(tree, *release.SOURCE)
    changelog = tree / "CHANGELOG.md"
    text = re.sub(r"(?m)^(## \[[\d.]+\] - ).*$", r"\1unreleased", changelog.read_text(), count=1)
    changelog.write_text(text)
    assert [line.split(":")[0] for line in release.mistakes(tree, f"v{version}")] == ["CHANGELOG.md"]
    changelog.write_text(text.replace("unreleased", "2026-12-01", 1))
    assert release.mistakes(tree, f"v{version}") == []
    assert [line.split(":")[0] for line in release.mistakes(tree, version)] == [f"tag {version}"]


def test_the_recipes_require_what_pyproject_requires() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    wanted = [tuple(word.lower().split(">=")) for word in re.findall(r'"([^"]+)"', listed[1])]
    conda = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())["requirements"]["run"]
    spack = (PACKAGING / "spack" / "package.py").read_text()
    ast.parse(spack)
    assert wanted
    building = re.search(r"^requires = \[(.*)\]", text, re.MULTILINE)
    assert building is not None
    host = yaml.safe_load((PACKAGING / "conda" / "recipe.yaml").read_text())["requirements"]["host"]
    control = (PACKAGING / "debian" / "control").read_text().split("\n\n")[0]
    for name in re.findall(r'"([\w-]+)>=', building[1]):
        assert re.search(rf"\b{name}\b", " ".join(map(str, host))), name
        assert name == "pip" or f" python3-{name}" in control, name
    for name, least in wanted:
        assert f"{name} >={least}" in conda
        assert f'depends_on("py-{name}@{least}:", type=("build", "run"))' in spack


def test_every_debian_file_belongs_to_a_package() -> None:
    control = (PACKAGING / "debian" / "control").read_text()
    packages = set(re.findall(r"(?m)^Package: (\S+)$", control))
    suffixes = (".install", ".lintian-overrides")
    files = [file for file in (PACKAGING / "debian").iterdir() if file.suffix in suffixes]
    assert {file.stem for file in files} == packages


def test_module_files_set_the_same_variables() -> None:
    lua = (PACKAGING / "modulefiles" / "palmette.lua").read_text()
    tcl = (PACKAGING / "modulefiles" / "palmette").read_text()
    assert tcl.startswith("#%Module")
    in_lua = set(re.findall(r'(?:_path|setenv)\("(\w+)"', lua))
    assert in_lua == set(re.findall(r"(?m)^\s*(?:\w+-path|setenv) (\w+)", tcl))
    assert in_lua == {
        "PATH",
        "MANPATH",
        "CMAKE_PREFIX_PATH",
        "PKG_CONFIG_PATH",
        "PALMETTE_TOPOLOGY",
        "PALMETTE_SITE",
        "LD_PRELOAD",
    }


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_pins_its_actions_and_bounds_its_jobs(path: Path) -> None:
    text = path.read_text()
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert "uses" in job or "timeout-minutes" in job, name
    actions = re.findall(r"uses: (\S+)(.*)", text)
    assert actions
    for action, comment in actions:
        if not action.startswith("./"):
            assert re.search(r"@[0-9a-f]{40}$", action) and re.fullmatch(r" # v\d+\.\d+\.\d+", comment), action


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """tools/make_release.py."""
    monkeypatch.syspath_prepend(ROOT / "tools")
    import make_release

    return make_release


@pytest.fixture
def packages(release: ModuleType, tmp_path: Path) -> Path:
    """A folder with a source distribution and a wheel, as far as names and forms go, and a site."""
    version = release.found(ROOT, *release.SOURCE)
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<p>palmette</p>")
    folder = tmp_path / "dist"
    folder.mkdir()
    with tarfile.open(folder / f"palmette-{version}.tar.gz", "w:gz") as tar:
        tar.add(ROOT / "LICENSE", f"palmette-{version}/LICENSE")
    with zipfile.ZipFile(folder / f"palmette-{version}-cp312-abi3-linux_x86_64.whl", "w") as wheel:
        wheel.writestr("palmette/__init__.py", "")
    return folder


def test_a_release_has_all_its_files_and_their_sums(maker: ModuleType, packages: Path) -> None:
    files = maker.collect(packages, 1_700_000_000, packages.parent / "site", ROOT / "docs" / "results")
    version = maker.check_release.found(ROOT, *maker.check_release.SOURCE)
    told = set(re.findall(r"^\| `([^`]+)` \|", (ROOT / "RELEASE.md").read_text(encoding="utf-8"), re.MULTILINE))
    patterns = [name.replace("VERSION", version) for name in told]
    assert all(any(path.match(pattern) for pattern in patterns) for path in files), (files, patterns)
    assert all(any(path.match(pattern) for path in files) for pattern in patterns), (files, patterns)
    for line in (packages / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((packages / name).read_bytes()).hexdigest() == digest
    assert len((packages / "SHA256SUMS").read_text().splitlines()) == len(files) - 1
    bill = json.loads((packages / f"palmette-{version}.spdx.json").read_text())
    assert {one["fileName"].split("/", 2)[2] for one in bill["files"]} == {
        "palmette/__init__.py", f"palmette-{version}/LICENSE"
    }  # fmt: skip
    required = {one["name"] for one in bill["packages"]} - {"palmette"}
    assert {"click", "numpy"} <= required
    known = {one["SPDXID"] for one in [*bill["packages"], *bill["files"]]} | {"SPDXRef-DOCUMENT"}
    assert all({one["spdxElementId"], one["relatedSpdxElement"]} <= known for one in bill["relationships"])


def test_archives_made_again_are_the_same(maker: ModuleType, packages: Path) -> None:
    def once() -> dict[str, bytes]:
        files = maker.collect(packages, 1_700_000_000, packages.parent / "site", ROOT / "docs" / "results")
        return {path.name: path.read_bytes() for path in files}

    first = once()
    (packages.parent / "site" / "index.html").touch()
    assert once() == first


def test_the_archive_of_results_has_what_left_the_tree(maker: ModuleType, tmp_path: Path) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    pages = tmp_path / "docs" / "results"
    (pages / "one").mkdir(parents=True)
    (pages / "one.md").write_text("page")
    (pages / "one" / "samples of today.json").write_text("[1]")
    git("add", "-A")
    git("commit", "-qm", "a page with samples")
    (pages / "one" / "samples of today.json").write_text("[2]")
    git("commit", "-qam", "samples again")
    git("rm", "-q", "docs/results/one/samples of today.json")
    git("commit", "-qm", "samples are in the archive")
    assert maker.files_ever_in(pages, tmp_path) == {"one.md": b"page", "one/samples of today.json": b"[2]"}


def test_what_is_missing_for_a_release_is_told(maker: ModuleType, packages: Path) -> None:
    site, results = packages.parent / "site", ROOT / "docs" / "results"
    with pytest.raises(maker.ReleaseError, match="make docs first"):
        maker.collect(packages, 0, packages, results)
    next(packages.glob("*.whl")).unlink()
    with pytest.raises(maker.ReleaseError, match="make wheel first"):
        maker.collect(packages, 0, site, results)
    with pytest.raises(maker.ReleaseError, match=r"nothing stands below \[9.9.9\]"):
        maker.notes("# Changelog\n\n## [9.9.9] - unreleased\n\n## [0.1.0]\n\n- all\n", "9.9.9")


def test_citation_and_codemeta_say_the_same() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    meta = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
    assert meta["version"] == str(cited["version"])
    assert meta["license"].rsplit("/", 1)[1] == cited["license"]
    assert meta["keywords"] == cited["keywords"]
    assert meta["description"] == cited["abstract"].strip().replace("\n", " ")
    assert [one["name"] for one in meta["author"]] == [one["name"] for one in cited["authors"]]
    assert cited["title"].startswith(f"{meta['name']}:")


@pytest.mark.parametrize("form", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda p: p.stem)
def test_forms_for_issues_ask_what_support_asks(form: Path) -> None:
    read = yaml.safe_load(form.read_text(encoding="utf-8"))
    assert read["name"] in (ROOT / "SUPPORT.md").read_text(encoding="utf-8")
    assert {field["type"] for field in read["body"]} <= {"textarea", "input", "dropdown", "markdown", "checkboxes"}
    assert len({field["id"] for field in read["body"]}) == len(read["body"])
    assert any(field.get("validations", {}).get("required") for field in read["body"])


def test_both_container_recipes_make_the_same_image() -> None:
    oci = (PACKAGING / "container" / "Containerfile").read_text(encoding="utf-8")
    apptainer = (PACKAGING / "container" / "palmette.def").read_text(encoding="utf-8")

    def what(text: str, pattern: str) -> list[str]:
        return [" ".join(found.split()) for found in re.findall(pattern, text)]

    for pattern in (
        r"(?i)\bfrom:? (docker\S+)",
        r"apt-get install ([^&\\\n]*)",
        r"bin/pip install ([^&\n\\]*)",
        r"PATH=(\S+)",
    ):
        assert what(oci, pattern) == what(apptainer, pattern) != []
    for text in (oci, apptainer):
        files = re.findall(r"(?<=\s)((?:examples|packaging|tools)/\S+)", re.sub(r"(?m)^#.*$", "", text))
        assert files and all((ROOT / file).is_file() for file in files)
