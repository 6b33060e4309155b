"""Labs without root: whether they are possible, what is said where not, and that nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from palmette.mpi import install as mpi_install
from palmette_lab.lab import LabError, build, user_namespace
from palmette_lab.lab.namespaces import check_can_build
from palmette_lab.lab.network import plan_network
from palmette_lab.lab.spec import read_spec
from palmette_lab.place import LabPlace

Helper = Callable[..., None]

DENIED = "Operation not permitted"


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Helper:
    """Stand in for palmette-lab-userns: `helper(OWN="complaint", NEW=None)` refuses the first and allows the other."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PALMETTE_LAB_BIN", str(folder))

    def answers(**complaints: str | None) -> None:
        cases = "".join(
            f"{whose}) echo 'palmette-lab-userns: {said}' >&2; exit 125;;\n"
            for whose, said in complaints.items()
            if said
        )
        script = folder / "palmette-lab-userns"
        script.write_text(f"#!/bin/sh\ncase $1 in\n{cases}esac\n")
        script.chmod(0o755)

    return answers


def test_root_needs_no_user_namespace(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    helper(NEW=f"user namespace: {DENIED}")
    assert user_namespace.way() == "root"


@pytest.mark.parametrize("user", [0, 1000])
def test_without_the_rights_of_root_a_user_namespace_is_tried(
    helper: Helper, monkeypatch: pytest.MonkeyPatch, user: int
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    helper(OWN=f"namespaces: {DENIED}")
    assert user_namespace.way() == "user namespace"


def test_tools_are_found_in_sbin_which_users_often_lack_in_path(
    helper: Helper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    helper()
    assert user_namespace.way() in ("root", "user namespace")


REFUSALS = [
    ("user namespace: No space left on device", {}, "sysctl user.max_user_namespaces=1000"),
    ("user namespace: Invalid argument", {}, "this kernel is built without them"),
    (
        f"user namespace: {DENIED}",
        {"unprivileged_userns_clone": "0"},
        "sysctl kernel.unprivileged_userns_clone=1",
    ),
    (f"user namespace: {DENIED}", {}, "start the container with --privileged"),
    (
        f"/proc/self/uid_map: {DENIED}",
        {"apparmor_restrict_unprivileged_userns": "1"},
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    ("namespaces: Permission denied", {}, "a security policy allows nothing in them"),
    (f"mount /proc: {DENIED}", {}, "a container hides parts of /proc or /sys"),
    ("tc: what is this?", {}, "call it with sudo"),
]


@pytest.mark.parametrize(("complaint", "sysctls", "advice"), REFUSALS, ids=[advice for *_, advice in REFUSALS])
def test_each_refusal_is_told_in_one_line_with_what_helps(
    helper: Helper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    complaint: str,
    sysctls: dict[str, str],
    advice: str,
) -> None:
    (tmp_path / "kernel").mkdir()
    for name, value in sysctls.items():
        (tmp_path / "kernel" / name).write_text(f"{value}\n")
    monkeypatch.setattr(user_namespace, "_SYSCTLS", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    helper(NEW=complaint)
    with pytest.raises(LabError) as raised:
        user_namespace.way()
    text = str(raised.value)
    assert text.startswith(f"no root, and no user namespace ({complaint}): ")
    assert advice in text
    assert "\n" not in text


def test_a_program_that_calls_the_command_line_is_not_replaced(
    palmette_lab: Callable[..., Any], helper: Helper, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    helper()
    result = palmette_lab("run", "--lab", "2node", "--mpi", "mpich", "--", "./app")
    assert (result.status, result.err.count("\n")) == (2, 1)
    assert "isn't replaced" in result.err


def _command(*arguments: str) -> list[str]:
    """Palmette in a process that can't bring up labs by itself: root's without the rights, or any other user's."""
    if os.geteuid() == 0:
        drop = ["setpriv", "--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]
    else:
        drop = []
    return [*drop, sys.executable, "-m", "palmette_lab.cli.main", *arguments]


@pytest.fixture
def _possible() -> None:
    """Skip where there is no MPI, or user namespaces aren't allowed."""
    try:
        mpi_install.find("mpich")
    except mpi_install.MpiNotFoundError as error:
        pytest.skip(str(error))
    code = "from palmette_lab.lab.user_namespace import way; print(way())"
    words = [*_command()[:-2], "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    if done.stdout != "user namespace\n":
        pytest.skip((done.stdout + done.stderr).strip().splitlines()[-1])


@pytest.mark.mpi
def test_a_program_runs_on_a_lab_without_root(_possible: None, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    words = _command("run", "--lab", "2node@100Mbit/s~5ms:1core", "--mpi", "mpich", "--")
    done = subprocess.run(
        [*words, "sh", "-c", "hostname; ls; exit 3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert sorted(done.stdout.split()) == ["h0", "h1", "mine", "mine"]


def _descendants(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text() if Path(f"/proc/{pid}").is_dir() else ""
    return [one for child in map(int, text.split()) for one in (child, *_descendants(child))]


@pytest.mark.mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_of_a_command_that_is_interrupted_or_killed(
    _possible: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    words = _command("run", "--lab", "2node:1core", "--mpi", "mpich", "--")
    before = set(Path("/sys/class/net").iterdir())
    program = ["sh", "-c", f"touch {tmp_path}/started; exec sleep 600"]
    with subprocess.Popen([*words, *program], stderr=subprocess.PIPE, text=True) as running:
        end = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert running.poll() is None, running.communicate()[1]
            assert time.monotonic() < end
            time.sleep(0.05)
        inside = _descendants(running.pid)
        running.send_signal(number)
        # The pipe ends when the last process that could write to it has.
        running.communicate(timeout=60)
    assert running.returncode == (130 if number == signal.SIGINT else -number)
    end = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in inside):
        assert time.monotonic() < end, "processes are left"
        time.sleep(0.05)
    assert inside
    assert [path.name for path in tmp_path.iterdir()] == ["started"]
    assert set(Path("/sys/class/net").iterdir()) == before


def test_the_tmpfs_of_a_lab_hides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "full" / "something").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    candidates = [str(tmp_path / name) for name in ("missing", "full", "link", "empty")]
    monkeypatch.setattr(user_namespace, "_HIDES_NOTHING", candidates)
    assert user_namespace.command_inside(["demo"])[0][2] == candidates[-1]
    monkeypatch.setattr(user_namespace, "_HIDES_NOTHING", candidates[:-1])
    assert user_namespace.command_inside(["demo"])[0][2] == "/run"


def test_what_a_lab_lacks_stands_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "may_raise", lambda: False)
    monkeypatch.setattr(build, "is_inside", lambda: True)
    quick, delayed = (build._limits(plan_network(read_spec(text))) for text in ("2node", "2node~5ms"))
    assert [*quick, "the delay switch has the machine's socket buffers and an ordinary priority"] == delayed
    lab: Any = SimpleNamespace(state=SimpleNamespace(spec="2node", spine_delay_s=0, limits=quick))
    assert LabPlace(lab).description == "lab 2node (the kernel's queue of frames is the machine's own, not of 50000)"


def test_a_lab_that_outlives_its_command_needs_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="root is needed for a lab that outlives its command"):
        check_can_build()
