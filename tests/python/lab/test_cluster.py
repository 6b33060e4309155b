"""A lab that is up: what it looks like from inside, how fast it is, and that nothing of it stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from palmette.topology import file as topology_file
from palmette_lab.lab import Lab, LabError, backlog, build, namespaces, state
from palmette_lab.lab.processes import ProcessId

pytestmark = pytest.mark.root

STREAM = Path(__file__).with_name("programs") / "stream.py"
EIGHT = "3leaf@50Mbit/s:3+3+2node@100Mbit/s:2core"


def on(lab: Lab, host: str, *argv: str) -> str:
    """Run a command on a host and return what it prints."""
    command = lab.exec_command(host, argv)
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


def measure(lab: Lab, what: str, source: str, target: str, count: int) -> float:
    """Let `stream.py` measure from host to host."""
    python = sys.executable
    receiver = subprocess.Popen(
        lab.exec_command(target, [python, str(STREAM), "receive"]), stdout=subprocess.PIPE, text=True
    )
    try:
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "listening\n"
        return float(on(lab, source, python, str(STREAM), what, target, str(count)))
    finally:
        receiver.communicate(timeout=20)


EXACTLY = pytest.mark.parametrize(
    "exactly", [False, pytest.param(True, marks=pytest.mark.long)], ids=["at-most", "exactly"]
)
"""On a busy machine a link isn't filled, and packets come late; but never is it faster than it was made."""


def check_rate(found: float, expected: float, exactly: bool) -> None:
    assert found < 1.15 * expected
    if exactly:
        assert found == pytest.approx(expected, rel=0.15)


def machine_looks() -> tuple[str, str]:
    """What a lab must not change: the machine's interfaces and mounts."""
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    names = "\n".join(sorted(line.split(":")[1] for line in links.splitlines()))
    return names, Path("/proc/self/mounts").read_text()


KINDS = ("net", "uts", "ipc", "mnt", "pid")


def processes() -> dict[int, int]:
    """All processes of the machine, each with its parent."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def namespaces_of(pids: Iterable[int]) -> set[str]:
    """All namespaces that the processes are in."""
    found = set()
    for pid in pids:
        for kind in KINDS:
            with contextlib.suppress(OSError):
                found.add(str(Path(f"/proc/{pid}/ns/{kind}").readlink()))
    return found


def with_children(pid: int) -> list[int]:
    """The keeper `pid` and the inits of its hosts."""
    return [pid, *(child for child, parent in processes().items() if parent == pid)]


def used_namespaces() -> set[str]:
    """All namespaces that a process of the machine is in."""
    return namespaces_of(processes())


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def test_up_and_down_leave_nothing_behind(lab_state: Path) -> None:
    before = machine_looks()
    lab = Lab.up(EIGHT)
    keeper = lab.state.keeper
    made = namespaces_of(with_children(keeper.pid))
    assert len(made) == len(KINDS) * (1 + 8)
    assert machine_looks() == before
    lab.down()
    assert not keeper.is_alive()
    # A lab of another test may have been given the number of one of them meanwhile.
    assert wait_until(lambda: not made & used_namespaces(), 60), made & used_namespaces()
    assert machine_looks() == before
    assert state.known_labs() == []


def test_each_host_has_a_name_address_processes_shared_memory_and_boot_id_of_its_own(lab: Lab) -> None:
    assert on(lab, "h3", "hostname") == "h3\n"
    assert "10.77.0.4/16" in on(lab, "h3", "ip", "-4", "addr", "show", "eth0")
    assert on(lab, "h3", "sh", "-c", "getent hosts h7").split() == ["10.77.0.8", "h7"]
    assert "h4" not in on(lab, "h3", "sh", "-c", "touch /dev/shm/h3; ls /dev/shm")
    assert on(lab, "h4", "sh", "-c", "ls /dev/shm").split() == ["tmp"]
    boot_id = "/proc/sys/kernel/random/boot_id"
    assert len({on(lab, host, "cat", boot_id) for host in ("h0", "h1", "login")}) == 3
    assert "palmette-lab-keeper" in on(lab, "h0", "cat", "/proc/1/cmdline")


def test_hosts_see_the_files_of_the_machine_the_temporary_ones_too(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "later").write_text("made after the lab\n")
    assert on(lab, "h5", "cat", str(tmp_path / "later")) == "made after the lab\n"


def test_the_topology_file_is_that_of_the_machine(lab: Lab) -> None:
    topology = topology_file.load(lab.topology_path)
    assert [len(leaf.children) for leaf in topology.machine.tree.children] == [3, 3, 2]
    assert [host.name for host in topology.machine.tree.hosts()] == lab.hosts


@EXACTLY
@pytest.mark.parametrize(("target", "line"), [("h1", 100e6), ("h7", 50e6)])
def test_a_plain_tcp_stream_runs_at_the_payload_rate(lab: Lab, target: str, line: float, exactly: bool) -> None:
    expected = line / 8 * 1448 / 1514
    check_rate(measure(lab, "send", "h0", target, int(expected * 0.8)), expected, exactly)


@pytest.mark.long
def test_without_rates_a_stream_is_much_faster_and_afterwards_as_slow_as_before(lab: Lab) -> None:
    with lab.unlimited():
        assert measure(lab, "send", "h0", "h7", 20_000_000) > 5 * 50e6 / 8
    assert measure(lab, "send", "h0", "h7", 3_000_000) < 1.15 * 50e6 / 8


@EXACTLY
def test_changed_rates_hold_and_stand_in_the_topology(lab: Lab, exactly: bool) -> None:
    lab.set_rates({"leaf": 20e6, "h0": None})
    expected = 20e6 / 8 * 1448 / 1514
    check_rate(measure(lab, "send", "h0", "h7", 2_000_000), expected, exactly)
    tree = topology_file.load(lab.topology_path).machine.tree
    assert tree.children[0].up_bytes_per_s == pytest.approx(expected)
    assert tree.children[0].children[0].up_bytes_per_s is None
    assert Lab.attach().state.rates["leaf1"] == 20e6


@EXACTLY
def test_a_delay_at_the_spine_counts_between_leaves_only(lab_state: Path, exactly: bool) -> None:
    with Lab.up("2leaf@100Mbit/s:2node@200Mbit/s", spine_delay_s=5e-3) as lab:
        across = measure(lab, "ping", "h0", "h2", 50)
        assert across > 9.9e-3
        if exactly:
            assert measure(lab, "ping", "h0", "h1", 50) < 2e-3
            assert across == pytest.approx(10e-3, rel=0.15)
        check_rate(measure(lab, "send", "h0", "h2", 12_000_000), 100e6 / 8 * 1448 / 1514, exactly)


@EXACTLY
def test_two_tiers_of_switches_are_two_tiers_of_links(lab_state: Path, exactly: bool) -> None:
    with Lab.up("2tier@20Mbit/s:2leaf@50Mbit/s:1node@100Mbit/s") as lab:
        assert lab.paths()[3] == ["leaf3", "tier1"]
        for target, line in (("h1", 50e6), ("h3", 20e6)):
            expected = line / 8 * 1448 / 1514
            check_rate(measure(lab, "send", "h0", target, int(expected * 0.6)), expected, exactly)


def test_two_labs_are_up_at_once_and_apart(lab: Lab) -> None:
    with Lab.up("2node", name="other") as other:
        assert other.state.keeper != lab.state.keeper
        assert on(other, "h1", "hostname") == "h1\n"
        assert state.known_labs() == ["default", "other"]
    assert on(lab, "h7", "hostname") == "h7\n"


def test_a_second_lab_of_the_same_name_is_refused(lab: Lab) -> None:
    with pytest.raises(LabError, match="is up already"):
        Lab.up("2node")


def test_a_lab_in_a_user_namespace_leaves_the_backlog_to_others(
    lab_state: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # There the setting doesn't exist, and the keepers of root's labs aren't to be seen.
    monkeypatch.setattr(backlog, "SYSCTL", tmp_path / "missing")
    monkeypatch.setattr(backlog, "_state_file", lambda: tmp_path / "backlog")
    text = '{"previous": 1000, "keepers": [[1, 1]]}'
    (tmp_path / "backlog").write_text(text, encoding="utf-8")
    backlog.restore_backlog(ProcessId(2, 2))
    assert (tmp_path / "backlog").read_text(encoding="utf-8") == text


def test_the_machines_backlog_is_raised_until_the_last_lab_is_down(lab_state: Path) -> None:
    before = int(backlog.SYSCTL.read_text())
    others = backlog._state_file().exists()
    first, second = Lab.up("2node", name="first"), Lab.up("2node", name="second")
    first.down()
    assert int(backlog.SYSCTL.read_text()) >= backlog.WANTED
    second.down()
    if not others:
        assert int(backlog.SYSCTL.read_text()) == before


def test_down_is_idempotent_and_knows_a_dead_lab(lab: Lab) -> None:
    lab.state.keeper.kill()
    with pytest.raises(LabError, match="is not up"):
        Lab.attach()
    lab.down()
    lab.down()
    assert build.tear_down("default") is False


def test_a_dead_lab_makes_room_for_a_new_one(lab: Lab) -> None:
    lab.state.keeper.kill()
    with Lab.up("2node") as new:
        lab.down()
        assert new.state.is_alive()


def test_a_pid_that_was_used_again_is_not_taken_for_the_keeper(lab: Lab) -> None:
    started = lab.state.keeper.started
    assert not ProcessId(os.getpid(), started).is_alive()


def test_a_lab_ends_by_itself_after_its_lifetime(lab_state: Path) -> None:
    lab = Lab.up("2node", lifetime_s=1.0, detach=True)
    assert wait_until(lambda: not lab.state.is_alive(), 5)


def test_a_build_that_fails_half_way_is_undone(lab_state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[state.LabState | None] = []

    def fail(*arguments: object) -> None:
        found.append(state.read_state(lab_state / "default"))  # written before the first cable is laid
        raise KeyboardInterrupt

    monkeypatch.setattr(namespaces.Keeper, "batch", fail)
    with pytest.raises(KeyboardInterrupt):
        Lab.up("2node")
    assert found[0] is not None
    assert not found[0].keeper.is_alive()
    assert state.known_labs() == []


def test_a_lab_ends_with_the_process_that_made_it_even_if_that_is_killed(lab_state: Path) -> None:
    code = (
        "from palmette_lab.lab import Lab; import time; "
        "print(Lab.up('2node').state.keeper_pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        keeper = ProcessId.of(int(maker.stdout.readline()))
        maker.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not keeper.is_alive())
    with pytest.raises(LabError, match="is not up"):
        Lab.attach()


def test_a_kernel_that_refuses_namespaces_is_told_in_one_line(lab_state: Path) -> None:
    code = "from palmette_lab.cli.main import main; import sys; sys.exit(main(['up', '2node']))"
    command = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "palmette-lab up: cannot make the hosts: cannot create namespaces: Operation not permitted" in done.stderr
