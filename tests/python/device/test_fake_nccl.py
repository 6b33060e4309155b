"""The fake NCCL behaves as the real one where tests rely on it."""

from __future__ import annotations

import pytest

# What the programs below begin with.
NCCL = """
class Id(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]

class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint), ("version", ctypes.c_uint),
                ("blocking", ctypes.c_int), ("rest", ctypes.c_int * 20)]

class Nccl:
    def __init__(self, rank, pipe, count, blocking=True):
        self.library = ctypes.CDLL("libnccl.so.2")
        id = Id()
        if rank == 0:
            assert self.library.ncclGetUniqueId(ctypes.byref(id)) == 0
            for _ in range(count - 1):
                os.write(pipe[1], ctypes.string_at(ctypes.addressof(id), 128))
        else:
            ctypes.memmove(ctypes.addressof(id), os.read(pipe[0], 128), 128)
        self.comm = ctypes.c_void_p()
        if blocking:
            self.begun = self.library.ncclCommInitRank(ctypes.byref(self.comm), count, id, rank)
        else:
            config = Config(ctypes.sizeof(Config), 0xCAFEBEEF, 22703, 0)
            self.begun = self.library.ncclCommInitRankConfig(
                ctypes.byref(self.comm), count, id, rank, ctypes.byref(config))
    def call(self, function, *arguments, stream=0):
        words = [ctypes.c_uint64(a) if isinstance(a, int) else a for a in arguments]
        return getattr(self.library, function)(*words, self.comm, ctypes.c_uint64(stream))
    def error(self):
        error = ctypes.c_int(-1)
        assert self.library.ncclCommGetAsyncError(self.comm, ctypes.byref(error)) == 0
        return error.value
"""

NCCL_RANKS = (
    NCCL
    + """
pipe = os.pipe()
count = 3
rank, children = ranks(count)
cuda = Cuda(rank)
"""
)


def test_nccl_of_three_processes(program) -> None:
    program(
        NCCL_RANKS
        + """
nccl = Nccl(rank, pipe, count)
assert nccl.begun == 0
stream = cuda.new("cuStreamCreate", 1)
values = np.arange(100000, dtype=np.float32) + rank
mine, to = DeviceArray(cuda, values), DeviceArray(cuda, np.zeros(300000, np.float32))
wait = lambda: cuda.cuStreamSynchronize(stream)
# The sum; the average, in place.
assert nccl.call("ncclAllReduce", mine.address, to.address, 100000, 7, 0, stream=stream) == 0
wait()
assert (to.numpy()[:100000] == 3 * np.arange(100000) + 3).all()
for operation, expected in ((2, values - rank + 2), (4, values - rank + 1)):
    mine.set(values)
    assert nccl.call("ncclAllReduce", mine.address, mine.address, 100000, 7, operation, stream=stream) == 0
    wait()
    assert (mine.numpy() == expected).all()
mine.set(values)
assert nccl.call("ncclAllGather", mine.address, to.address, 100000, 7, stream=stream) == 0
wait()
assert all((to.numpy()[r * 100000 : (r + 1) * 100000] == values - rank + r).all() for r in range(3))
assert nccl.call("ncclReduceScatter", to.address, mine.address, 100000, 7, 0, stream=stream) == 0
wait()
assert (mine.numpy() == 3 * values).all()
mine.set(values)
assert nccl.call("ncclBroadcast", mine.address, mine.address, 100000, 7, 1, stream=stream) == 0
assert nccl.call("ncclReduce", mine.address, to.address, 100000, 7, 0, 2, stream=stream) == 0
wait()
assert rank != 2 or (to.numpy()[:100000] == 3 * (values - rank + 1)).all()
# A ring, twice each way in one group, receives after sends.
nccl.library.ncclGroupStart()
for part in range(2):
    assert nccl.call("ncclSend", mine.address + 4 * part, 90000, 7, (rank + 1) % 3, stream=stream) == 0
for part in range(2):
    assert nccl.call("ncclRecv", to.address + 400000 * part, 90000, 7, (rank + 2) % 3, stream=stream) == 0
assert nccl.library.ncclGroupEnd() == 0
wait()
assert (to.numpy()[:90000] == mine.numpy()[:90000]).all()
assert (to.numpy()[100000:190000] == mine.numpy()[1:90001]).all()
host = np.zeros(10, np.float32)
assert nccl.call("ncclAllReduce", host.ctypes.data, mine.address, 10, 7, 0, stream=stream) == 4
assert nccl.call("ncclAllReduce", mine.address, mine.address + 399990, 10, 7, 0, stream=stream) == 4
assert nccl.library.ncclCommDestroy(nccl.comm) == 0
assert "fake nccl" not in "".join(os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")
                                  if os.path.lexists(f"/proc/self/fd/{fd}"))
wait_for(*children)
""",
        devices=3,
    )


def test_nccl_hangs_without_a_partner_until_it_is_aborted(program) -> None:
    program(
        NCCL_RANKS
        + """
nccl = Nccl(rank, pipe, count)
stream = cuda.new("cuStreamCreate", 1)
mine = DeviceArray(cuda, np.zeros(10, np.float32))
if rank == 0:
    assert nccl.call("ncclSend", mine.address, 10, 7, 1, stream=stream) == 0
else:
    assert nccl.call("ncclAllReduce", mine.address, mine.address, 10, 7, 0, stream=stream) == 0
for _ in range(30):
    assert cuda.result("cuStreamQuery", stream) == 600
    time.sleep(0.001)
assert nccl.library.ncclCommAbort(nccl.comm) == 0
cuda.cuStreamSynchronize(stream)
wait_for(*children)
""",
        devices=3,
        nccl={"hang": "ncclAllReduce:1"},
    )


@pytest.mark.parametrize("multi", [False, True])
def test_nccl_on_one_device(program, multi: bool) -> None:
    program(
        NCCL_RANKS.replace("Cuda(rank)", "Cuda()")
        + f"""
nccl = Nccl(rank, pipe, count)
assert nccl.begun == (0 if {multi} else 5), nccl.begun
nccl.library.ncclGetLastError.restype = ctypes.c_char_p
assert {multi} or b"Duplicate GPU" in nccl.library.ncclGetLastError(nccl.comm)
wait_for(*children)
""",
        nccl={"multi": multi},
    )


def test_nccl_that_does_not_block(program) -> None:
    program(
        NCCL_RANKS
        + """
nccl = Nccl(rank, pipe, count, blocking=False)
assert nccl.begun == 7
mine = DeviceArray(cuda, np.full(10, rank, np.float64))
early = nccl.call("ncclAllReduce", mine.address, mine.address, 10, 8, 0)
assert early == 4
while nccl.error() == 7:
    time.sleep(0.001)
assert nccl.error() == 0
assert nccl.call("ncclAllReduce", mine.address, mine.address, 10, 8, 0) == 7
assert nccl.error() == 7
while nccl.error() == 7:
    pass
assert (mine.numpy() == 3).all()
wait_for(*children)
""",
        devices=3,
        nccl={"slow_us": 20000},
    )
