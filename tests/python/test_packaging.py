"""What stands around a release: versions, recipes, workflows. Nothing is built."""

from __future__ import annotations

import ast
import re
import shutil
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
