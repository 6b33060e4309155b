"""Calling contexts of samples, and what made a rank late by them, of recordings that are made up here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from palmette import _core
from palmette.record import contexts as contexts_module
from palmette.record.contexts import Contexts, Site
from palmette.record.late import late_of
from palmette.record.sampled import callers, tree
from palmette.record.symbols import Place, cython_name

PYTHON, NATIVE = _core.ContextKind.python, _core.ContextKind.native


def python(function: str, line: int, file: str = "/home/user/heat.py") -> Any:
    return SimpleNamespace(
        kind=PYTHON, module=file, build_id="", offset=0, is_innermost=False, function=function, line=line
    )


def native(module: str, offset: int) -> Any:
    return SimpleNamespace(
        kind=NATIVE, module=module, build_id="", offset=offset, is_innermost=False, function="", line=0
    )


NAMES = {
    ("/usr/bin/app", 1): (Place("main", "/src/app.c", 5),),
    ("/usr/bin/app", 2): (Place("fast", "/src/app.c", 31), Place("smooth", "/src/app.c", 20)),
    ("/usr/bin/app", 3): (Place("smooth", "/src/app.c", 21),),
    ("/usr/bin/app", 4): (Place("std::vector<double>::operator[]", "/usr/include/c++/12/bits/stl_vector.h", 1124),),
    ("/lib/libm.so.6", 1): (Place("exp"),),
    ("/lib/libc.so.6", 1): (Place("__libc_start_call_main"),),
    ("/opt/libmpi.so.12", 1): (Place("MPI_Allreduce"),),
    ("/opt/libmpi.so.12", 2): (Place("MPIDI_progress"),),
    ("/usr/bin/app", 5): (Place("my_sum", "/src/app.c", 60),),
}


class Resolver:
    """Names addresses as NAMES has them."""

    notes = ()

    def add(self, frames: Any) -> None:
        pass

    def knows(self, frame: Any) -> bool:
        return (frame.module, frame.offset) in NAMES

    def places(self, frame: Any) -> tuple[Place, ...]:
        return NAMES[frame.module, frame.offset]


def built(monkeypatch: pytest.MonkeyPatch, stacks: list[tuple[int, list[Any], float]], ranks: int = 2) -> Contexts:
    """Return the contexts of stacks, outermost frame first: process, frames, seconds."""
    monkeypatch.setattr(contexts_module, "Resolver", Resolver)
    frames: list[Any] = []
    nodes: dict[tuple[int, int], int] = {}
    parent, frame_of, rows = [0], [0], []
    for process, stack, cpu_s in stacks:
        at = 0
        for one in stack:
            if one not in frames:
                frames.append(one)
            key = (at, frames.index(one))
            if key not in nodes:
                nodes[key] = len(parent)
                parent.append(at)
                frame_of.append(key[1])
            at = nodes[key]
        rows.append((at, process, 1, cpu_s))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    sums = dict(zip(("sum_context", "sum_process", "sum_samples", "sum_cpu_s"), columns, strict=True))
    read: Any = SimpleNamespace(frames=frames, parent=np.array(parent), frame=np.array(frame_of), **sums)
    return Contexts(read, list(range(ranks)))


def app(offset: int) -> Any:
    return native("/usr/bin/app", offset)


START, MAIN, SMOOTH, MPI = native("/lib/libc.so.6", 1), app(1), app(3), native("/opt/libmpi.so.12", 1)


def names(contexts: Contexts, site: int) -> list[str]:
    return [f"{contexts.sites[one].function}:{contexts.sites[one].line}" for one in contexts.callers(site)][::-1]


def test_inlined_functions_are_frames_and_starts_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [(0, [START, MAIN, app(2)], 1.0)])
    assert names(found, int(found.site_of[-1])) == ["main:5", "smooth:20", "fast:31"]


def test_functions_of_libraries_count_for_the_line_that_calls_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [
        (0, [MAIN, SMOOTH, native("/lib/libm.so.6", 1)], 2.0), (1, [MAIN, SMOOTH, app(4)], 1.0), (1, [MAIN], 0.5),
    ])  # fmt: skip
    first, second = found.lines()
    assert (first.site.function, first.site.line, first.cpu_s) == ("smooth", 21, 3.0)
    assert (first.most_rank, first.most_s, first.least_rank, first.least_s) == (0, 2.0, 1, 1.0)
    assert (second.site.function, second.cpu_s) == ("main", 0.5)


def test_an_mpi_call_is_one_frame_but_for_the_program_s_own_below_it(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = native("/opt/libmpi.so.12", 2)
    ours = native("/x/libpalmette_record.so", 7)
    found = built(monkeypatch, [
        (0, [MAIN, ours, MPI, inner, native("/lib/libc.so.6", 9)], 1.0), (0, [MAIN, ours], 1.0),
        (0, [MAIN, MPI, inner, app(5)], 2.0),
    ])  # fmt: skip
    assert names(found, int(found.site_of[5])) == ["main:5", "MPI_Allreduce:0"]
    assert names(found, int(found.site_of[-1])) == ["main:5", "MPI_Allreduce:0", "my_sum:60"]
    assert found.computing_s == 0 and found.lines() == []
    assert found.by_rank_s[1].tolist() == [4.0, 0.0]


def test_the_interpreter_s_frames_stand_for_python_s(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter = native("/usr/bin/python3.11", 7)
    NAMES["/x/MPI.so", 1] = (Place("__pyx_pw_6mpi4py_3MPI_4Comm_143Allreduce"),)
    NAMES["/x/MPI.so", 2] = (Place("__pyx_f_6mpi4py_3MPI_10_p_msg_cco_for_allreduce"),)
    stack = [
        START, interpreter, python("<module>", 30), interpreter, python("step", 12), interpreter,
        native("/x/MPI.so", 1), native("/x/MPI.so", 2), MPI,
    ]  # fmt: skip
    found = built(monkeypatch, [
        (0, stack, 1.0), (0, [*stack[:5], interpreter], 1.0),
        (1, [*stack[:5], python("loads", 9, "/usr/lib/python3.11/json/decoder.py")], 3.0),
    ])  # fmt: skip
    in_mpi = next(site for site in range(len(found.sites)) if found.sites[site].kind == "mpi")
    assert names(found, in_mpi) == ["<module>:30", "step:12", "Comm.Allreduce:0", "MPI_Allreduce:0"]
    (line,) = found.lines()
    assert (line.site.function, line.site.line, line.cpu_s) == ("step", 12, 4.0)


def test_statistics_are_over_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [(0, [MAIN, SMOOTH], 1.0), (2, [MAIN, SMOOTH], 4.0), (2, [MAIN], 1.0)], ranks=3)
    monkeypatch.setattr(contexts_module, "CHUNK", 1)  # a rank at a time
    rows = tree(found)
    assert [(row["function"], row["depth"], row["cpu_s"], row["own_s"]) for row in rows] == [
        ("main", 0, 6.0, 1.0), ("smooth", 1, 5.0, 5.0),
    ]  # fmt: skip
    smooth = rows[1]
    assert (smooth["least_s"], smooth["least_rank"], smooth["most_s"], smooth["most_rank"]) == (0.0, 1, 4.0, 2)
    assert smooth["mean_s"] == pytest.approx(5 / 3)
    assert smooth["deviation_s"] == pytest.approx(np.std([1.0, 0.0, 4.0]))


def test_views_of_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    again = python("walk", 7)
    first, last = python("<module>", 1), python("leaf", 9)
    found = built(monkeypatch, [
        (0, [first, again, again, last], 3.0), (1, [first, again], 1.0), (1, [first, python("other", 5), last], 2.0),
    ])  # fmt: skip
    # A recursive function is counted once with what it calls.
    assert [(site.function, whole, own) for site, whole, own in found.functions()] == [
        ("<module>", 6.0, 0.0), ("leaf", 5.0, 5.0), ("walk", 4.0, 1.0), ("other", 2.0, 0.0),
    ]  # fmt: skip
    hot = [found.site_of_node[node].function for node in found.hot_path()]
    assert hot == ["<module>", "walk", "leaf"], "recursion on one line is one frame"
    rows = [(row["depth"], row["function"], row["cpu_s"]) for row in callers(found)]
    assert rows == [
        (0, "leaf", 5.0), (1, "walk", 3.0), (2, "<module>", 3.0), (1, "other", 2.0),
        (2, "<module>", 2.0), (0, "walk", 1.0), (1, "<module>", 1.0),
    ]  # fmt: skip


LOOPS = tuple(Place(f"loop at app.c:{line}", "/src/app.c", line) for line in (18, 19))


def test_loops_are_nodes_of_the_tree_and_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    NAMES["/usr/bin/app", 6] = (Place("fast", "/src/app.c", 31), Place("smooth", "/src/app.c", 20, loops=LOOPS))
    NAMES["/usr/bin/app", 7] = (Place("smooth", "/src/app.c", 21, loops=LOOPS[:1]),)
    found = built(monkeypatch, [(0, [MAIN, app(6)], 3.0), (0, [MAIN, app(7)], 2.0), (1, [MAIN, app(3)], 1.0)])
    assert [(row["depth"], row["function"], row["lines"], row["cpu_s"], row["own_s"]) for row in tree(found)] == [
        (0, "main", [5], 6.0, 0.0), (1, "smooth", [20, 21], 6.0, 1.0), (2, "loop at app.c:18", [20, 21], 5.0, 2.0),
        (3, "loop at app.c:19", [20], 3.0, 0.0), (4, "fast", [31], 3.0, 3.0),
    ]  # fmt: skip
    assert [(site.function, whole, own) for site, whole, own in found.functions()] == [
        ("main", 6.0, 0.0), ("smooth", 6.0, 3.0), ("fast", 3.0, 3.0),
    ]  # fmt: skip
    assert [(line.site.function, line.site.line, line.cpu_s) for line in found.lines()] == [
        ("fast", 31, 3.0), ("smooth", 21, 3.0),
    ]  # fmt: skip
    stack = found.stack(int(found.site_of[-3]))
    assert [(one.function, one.line, one.kind) for one in stack] == [
        ("main", 5, "native"), ("smooth", 18, "native"), ("loop at app.c:18", 19, "loop"),
        ("loop at app.c:19", 20, "loop"), ("fast", 31, "native"),
    ]  # fmt: skip


def work(late: dict[int, float], other: dict[int, float], wall_s: tuple[float, float]) -> Any:
    """Return what a late rank did once: seconds by context (by number), and wall time of it and of who waited."""
    numbers = sorted(late | other)
    columns = {
        "context": np.array(numbers, np.uint32),
        "context_late_s": np.array([late.get(one, 0.0) for one in numbers]),
        "context_other_s": np.array([other.get(one, 0.0) for one in numbers]),
    }
    gap = SimpleNamespace(
        before_function=0, before_path=1, after_function=0, after_path=2, late_s=wall_s[0],
        late_cpu_s=sum(late.values()), other_s=wall_s[1], other_cpu_s=sum(other.values()),
        late_off=SimpleNamespace(put_aside_s=0.0, io_s=0.0, asleep_s=0.0),
        other_off=SimpleNamespace(put_aside_s=0.0, io_s=0.0, asleep_s=0.0),
    )  # fmt: skip
    beside = {"beside": np.empty(0, np.uint32), "beside_late_s": np.empty(0), "beside_other_s": np.empty(0)}
    return SimpleNamespace(process=1, instances=1, waiters=[0], gaps=[gap], **columns, **beside)


PLACES = [Place("unknown"), Place("step", "app.c", 30), Place("step", "app.c", 44)]


def explained(contexts: Contexts, *works: Any) -> Any:
    found = late_of(works, contexts, PLACES, [0, 1])
    assert found is not None
    return found


def test_what_both_do_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [(0, [MAIN, SMOOTH], 1.0), (0, [MAIN, app(5)], 1.0)])
    late = explained(found, work({2: 3.0, 3: 1.5}, {2: 3.0, 3: 0.5}, (4.5, 3.5)))
    assert [(one.site.function, one.site.line) for one in late.blamed] == [("my_sum", 60)]
    assert late.blamed[0].share == pytest.approx(1)
    assert "100% of that in my_sum() at app.c:60, called from main() at app.c:5" in late.sentence
    assert "rank 0 spends 500 ms there, it 1.5 s" in late.sentence


def test_off_the_processor_is_not_computing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [(0, [MAIN, SMOOTH], 1.0)])
    late = explained(found, work({2: 0.2}, {2: 0.1}, (2.2, 0.1)))
    assert late.is_off and late.off_s == pytest.approx(2.0)
    assert "off the processor 2 s longer" in late.sentence
    assert "between app.c:30 and app.c:44" in late.sentence


def test_the_kernel_tells_why_it_is_off_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    found = built(monkeypatch, [(0, [MAIN, SMOOTH], 1.0)])
    one = work({2: 0.2}, {2: 0.1}, (2.2, 0.1))
    one.gaps[0].late_off = SimpleNamespace(put_aside_s=0.5, io_s=1.6, asleep_s=0.1)
    one.gaps[0].other_off = SimpleNamespace(put_aside_s=0.1, io_s=0.0, asleep_s=0.1)
    late = explained(found, one)
    assert dict(late.off_by_state) == pytest.approx({"put_aside_s": 0.4, "io_s": 1.6})
    assert "2 s longer each time, 1.6 s of it in I/O or page faults, 400 ms waiting for a processor" in late.sentence
    one.gaps[0].late_off = SimpleNamespace(put_aside_s=0.5, io_s=0.0, asleep_s=0.0)
    assert "(asleep, in I/O or put aside)" in explained(found, one).sentence, "less than half is accounted for"


@pytest.mark.parametrize(
    ("other_cpu_s", "wall_s", "is_serial"),
    [
        (0.0, (1.0, 0.001), True),
        (0.17, (3.0, 0.17), False),  # a busy machine puts the late rank aside
        (0.01, (1.0, 0.4), True),  # or the others, behind a call
    ],
)
def test_a_serial_part_is_where_the_others_compute_nothing(
    monkeypatch: pytest.MonkeyPatch, other_cpu_s: float, wall_s: tuple[float, float], *, is_serial: bool
) -> None:
    found = built(monkeypatch, [(0, [MAIN, SMOOTH], 1.0)], ranks=3)
    one = work({2: 1.0}, {2: other_cpu_s}, wall_s)
    one.waiters = [0, 2]
    late = late_of([one], found, PLACES, [0, 1, 2])
    assert late is not None and late.is_serial == is_serial
    assert ("serial part" in late.sentence) == is_serial
    one.waiters = [0]
    late = late_of([one], found, PLACES, [0, 1, 2])
    assert late is not None and not late.is_serial, "rank 2 doesn't wait"


def test_a_function_is_named_with_what_it_calls_where_none_has_most(monkeypatch: pytest.MonkeyPatch) -> None:
    step = python("step", 12)
    inner = [python(f"part{i}", 100 + i) for i in range(5)]
    found = built(monkeypatch, [(0, [python("<module>", 3), step, one], 1.0) for one in inner])
    late = explained(found, work({3 + i: 1.0 for i in range(5)}, {}, (5.0, 0.0)))
    assert (late.blamed[0].site.function, late.blamed[0].with_callees) == ("step", True)
    assert "in step() at heat.py:12 and what it calls" in late.sentence


def test_a_function_that_is_called_in_several_loops_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function by itself has half of it, and no loop of main has: what is called in both is named."""
    for offset, loop in ((8, LOOPS[0]), (9, LOOPS[1])):
        NAMES["/usr/bin/app", offset] = (Place("main", "/src/app.c", offset, loops=(loop,)),)
    parts = [python(f"part{i}", 100 + i) for i in range(4)]
    found = built(monkeypatch, [
        (0, [app(8 + at % 2), python("step", 12), one], 1.0) for at, one in enumerate(parts)
    ])  # fmt: skip
    inner = [at for at in range(len(found.site_of)) if found.sites[found.site_of[at]].function.startswith("part")]
    late = explained(found, work(dict.fromkeys(inner, 1.0), {}, (4.0, 0.0)))
    assert (late.blamed[0].site.function, late.blamed[0].with_callees, late.blamed[0].late_s) == ("step", True, 4.0)


def test_names_of_cython() -> None:
    assert cython_name("__pyx_pw_6mpi4py_3MPI_4Comm_143Allreduce") == "Comm.Allreduce"
    assert cython_name("__pyx_pw_6module_1function") == "function"
    assert cython_name("__pyx_f_6mpi4py_3MPI_x") == "__pyx_f_6mpi4py_3MPI_x"


def test_a_site_has_its_place() -> None:
    assert str(Site("smooth", "/src/app.c", 21, "native", is_own=True).place) == "app.c:21"
    assert Site("<module>", "a.py", 1, "python", is_own=True).name == "<module>"
