"""Run by gdb: follow a repeated MPI_Allreduce line by line, and print each source file that it comes through.

The program is stopped at the call numbered NUMBER; `FILE path` for each file, in order, as often as another one comes.
"""

import os

import gdb

MOST_STEPS = 100_000


def depth():
    """How many frames there are."""
    frame, found = gdb.selected_frame(), 0
    while frame is not None:
        frame, found = frame.older(), found + 1
    return found


for setting in ("pagination off", "confirm off", "breakpoint pending on", "startup-with-shell off"):
    gdb.execute(f"set {setting}")
gdb.execute(f"set environment LD_PRELOAD {os.environ['FOLLOWED']}")
called = gdb.Breakpoint("MPI_Allreduce")
called.ignore_count = int(os.environ["NUMBER"])
gdb.execute("run")
called.enabled = False
outermost, last = depth(), ""
for _ in range(MOST_STEPS):
    if depth() < outermost:
        print("ENDED")
        break
    table = gdb.selected_frame().find_sal().symtab
    if table is not None and table.filename != last:
        last = table.filename
        print("FILE", table.fullname())
    gdb.execute("step", to_string=True)
gdb.execute("kill")
