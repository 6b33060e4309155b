"""The fake libcuda and libamdhip64 behave as the real ones where tests rely on it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from . import fake


@pytest.mark.parametrize("reads", [True, False])
def test_a_touch_of_device_memory_by_the_host_is_a_segmentation_fault(program, reads: bool) -> None:
    touch = "ctypes.string_at(address, 1)" if reads else "ctypes.memset(address, 1, 1)"
    program(
        f"""
        cuda = Cuda()
        address = cuda.new("cuMemAlloc_v2", 100)
        {touch}
        """,
        status=-signal.SIGSEGV,
    )


def test_another_process_cannot_read_device_memory_by_its_address(program) -> None:
    program("""
        cuda = Cuda()
        address = cuda.new("cuMemAlloc_v2", 100)
        memory = open("/proc/self/mem", "rb", buffering=0)
        libc = ctypes.CDLL(None, use_errno=True)
        here = ctypes.create_string_buffer(8)
        class Part(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        to, of = Part(ctypes.addressof(here), 8), Part(address, 8)
        one = ctypes.c_ulong(1)
        got = libc.process_vm_readv(os.getpid(), ctypes.byref(to), one, ctypes.byref(of), one, ctypes.c_ulong(0))
        assert got == -1, got
    """)


def test_nothing_works_before_initialization_or_without_a_context(program) -> None:
    program("""
        cuda = Cuda(device=None)
        made = ctypes.c_uint64()
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, 4096) == 3
        assert cuda.result("cuMemAlloc_v2", ctypes.byref(made), 8) == 3
        cuda.cuInit(0)
        for function in ("cuMemAlloc_v2", "cuStreamCreate", "cuEventCreate"):
            assert cuda.result(function, ctypes.byref(made), 8) == 201, function
        cuda.cuCtxGetCurrent(ctypes.byref(made))
        assert made.value == 0
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, 4096) == 1
    """)


def test_primary_contexts_are_counted_and_their_creation_is_logged(program) -> None:
    ended = program("""
        cuda = Cuda()
        def active():
            flags, state = ctypes.c_uint(), ctypes.c_int()
            cuda.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(state))
            return state.value
        assert cuda.new("cuDevicePrimaryCtxRetain", 0) == cuda.context
        cuda.cuDevicePrimaryCtxRelease_v2(0)
        assert active() == 1
        address = cuda.new("cuMemAlloc_v2", 8)
        cuda.cuDevicePrimaryCtxRelease_v2(0)
        assert active() == 0
        assert cuda.result("cuMemFree_v2", address) == 201
        assert cuda.result("cuDevicePrimaryCtxRelease_v2", 0) == 201
        own = cuda.new("cuCtxCreate_v2", 0, 0)
        made = ctypes.c_uint64()
        cuda.cuCtxPopCurrent_v2(ctypes.byref(made))
        assert made.value == own
        cuda.cuCtxPushCurrent_v2(own)
        cuda.cuCtxDestroy_v2(own)
        assert cuda.result("cuCtxSetCurrent", own) == 201
    """)
    (log,) = ended.logs
    assert [made["primary"] for made in log.contexts()] == [True, False]
    assert log.live() == []
    assert log.calls("cuDevicePrimaryCtxRetain") == 2
    assert log.calls("cuDevicePrimaryCtxRetain", "libpalmette") == 0


def test_attributes_of_pointers(program) -> None:
    program(
        """
        cuda = Cuda()
        def several(address):
            "type, context, is managed, ordinal, buffer id"
            kinds = [2, 1, 8, 9, 7]
            words = [ctypes.c_uint64() for _ in kinds]
            pointers = (ctypes.c_void_p * 5)(*[ctypes.addressof(word) for word in words])
            cuda.cuPointerGetAttributes(5, (ctypes.c_int * 5)(*kinds), pointers, address)
            words[3] = ctypes.c_int(words[3].value)
            return [word.value for word in words]
        pageable = np.zeros(100)
        at = pageable.ctypes.data
        made = ctypes.c_uint64()
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, at) == 1
        assert several(at) == [0, 0, 0, -2, 0]
        device = cuda.new("cuMemAlloc_v2", 1000)
        assert several(device + 999)[:4] == [2, cuda.context, 0, 0]
        assert cuda.attribute(10, device) == 1
        assert (cuda.attribute(11, device + 9), cuda.attribute(12, device + 9)) == (device, 1000)
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, device + 1000) == 1
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 4, device) == 1
        managed = cuda.new("cuMemAllocManaged", 1000, 1)
        assert several(managed)[:3] == [2, cuda.context, 1]
        assert cuda.attribute(10, managed) == 0
        ctypes.memset(managed, 7, 1000)
        pinned = cuda.new("cuMemHostAlloc", 1000, 0)
        assert several(pinned)[:3] == [1, cuda.context, 0]
        cuda.cuMemHostRegister_v2(at, 800, 0)
        assert several(at + 799)[0] == 1
        assert cuda.result("cuMemHostRegister_v2", at + 8, 8, 0) == 712
        cuda.cuMemHostUnregister(at)
        assert cuda.result("cuMemHostUnregister", at) == 713
        assert several(at)[0] == 0
        seen = {several(device)[4]}
        for _ in range(20):
            cuda.cuMemFree_v2(device)
            device = cuda.new("cuMemAlloc_v2", 1000)
            seen.add(several(device)[4])
        assert len(seen) == 21
        pooled = [cuda.new("cuMemAllocAsync", 1000, 0) for _ in range(2)]
        assert sorted(several(p)[0] for p in pooled) == [1, 2]
        assert all(several(p)[1] == 0 for p in pooled)
        assert cuda.attribute(17, pooled[0]) == cuda.new("cuDeviceGetDefaultMemPool", 0) != 0
        assert cuda.attribute(17, device) == 0
        assert cuda.attribute(10, pooled[0]) == 0
        """
    )


def test_mapped_memory(program) -> None:
    program("""
        cuda = Cuda()
        part = 2 << 20
        properties = struct.pack("iiiiQQ", 1, 0, 1, 0, 0, 0)
        handles = [cuda.new("cuMemCreate", part, properties, 0) for _ in range(2)]
        range_ = cuda.new("cuMemAddressReserve", 2 * part, 0, 0, 0)
        for i, handle in enumerate(handles):
            cuda.cuMemMap(range_ + i * part, part, 0, handle, 0)
        data = np.arange(2 * part // 8)
        assert cuda.result("cuMemcpyHtoD_v2", range_, data.ctypes.data, 2 * part) == 1
        cuda.cuMemSetAccess(range_, 2 * part, struct.pack("iii", 1, 0, 3), 1)
        cuda.cuMemcpyHtoD_v2(range_, data.ctypes.data, 2 * part)
        back = np.zeros_like(data)
        cuda.cuMemcpyDtoH_v2(back.ctypes.data, range_, 2 * part)
        assert (back == data).all()
        assert sorted(cuda.attribute(2, range_ + i * part) & 0xffffffff for i in range(2)) == [1, 2]
        assert cuda.attribute(1, range_) == 0
        assert (cuda.attribute(11, range_ + part), cuda.attribute(12, range_ + part)) == (range_, 2 * part)
        assert (cuda.attribute(19, range_ + part), cuda.attribute(18, range_ + part)) == (range_ + part, part)
        assert cuda.new("cuMemRetainAllocationHandle", range_ + 5) == handles[0]
        cuda.cuMemRelease(handles[0])
        told = ctypes.create_string_buffer(32)
        cuda.cuMemGetAllocationPropertiesFromHandle(told, handles[0])
        assert told.raw == properties
        device = cuda.new("cuMemAlloc_v2", 8)
        made = ctypes.c_uint64()
        assert cuda.result("cuMemRetainAllocationHandle", ctypes.byref(made), device) == 1
        assert cuda.result("cuIpcGetMemHandle", ctypes.create_string_buffer(64), range_) == 1
        for handle in handles:
            cuda.cuMemRelease(handle)
        assert cuda.result("cuMemAddressFree", range_, 2 * part) == 1
        cuda.cuMemUnmap(range_, 2 * part)
        cuda.cuMemAddressFree(range_, 2 * part)
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, range_) == 1
    """)


def test_copies_are_late(program) -> None:
    ended = program(
        """
        cuda = Cuda()
        stream = cuda.new("cuStreamCreate", 1)
        device = cuda.new("cuMemAlloc_v2", 64)
        cuda.write(device, b"a" * 64)
        host = ctypes.create_string_buffer(64)
        at = ctypes.addressof(host)
        cuda.cuMemcpyDtoHAsync_v2(at, device, 64, stream)
        assert host.raw == bytes(64)
        cuda.write(device, b"b" * 64)           # the source is read late
        cuda.cuStreamSynchronize(stream)
        assert host.raw == b"b" * 64
        cuda.cuMemcpyHtoDAsync_v2(device, at, 64, stream)
        event = cuda.new("cuEventCreate", 2)
        assert cuda.result("cuEventQuery", event) == 0
        cuda.cuEventRecord(event, stream)
        ctypes.memset(at, ord("c"), 64)         # so is the host's
        cuda.cuEventSynchronize(event)
        assert cuda.read(device, 64) == b"c" * 64
        # What nobody waits for happens, too.
        cuda.cuMemsetD8Async(device, ord("d"), 64, stream)
        assert cuda.read(device, 64) == b"c" * 64
        while cuda.read(device, 64) != b"d" * 64:
            time.sleep(0.001)
        # Synchronous ones within the device don't wait.
        other = cuda.new("cuMemAlloc_v2", 64)
        cuda.write(other, b"e" * 64)
        cuda.cuMemcpyDtoD_v2(device, other, 64)
        assert cuda.read(device, 64) == b"d" * 64
        cuda.cuCtxSynchronize()
        assert cuda.read(device, 64) == b"e" * 64
        """,
        lazy=True,
    )
    (log,) = ended.logs
    assert log.bytes == {"device to pageable": 64, "pageable to device": 64, "fill": 64, "device to device": 64}
    assert sorted(item["kind"] for item in log.live()) == ["device", "device", "event", "primary context", "stream"]


@pytest.mark.parametrize("seed", range(4))
def test_streams_are_ordered_by_events_and_by_the_default_stream(program, seed: int) -> None:
    program(
        """
        cuda = Cuda()
        device = cuda.new("cuMemAlloc_v2", 4096)
        host = np.zeros(4096, np.uint8)
        for round in range(100):
            free = [cuda.new("cuStreamCreate", 1) for _ in range(2)]
            event = cuda.new("cuEventCreate", 2)
            first, second = round % 250, round % 250 + 1
            cuda.cuMemsetD8Async(device, first, 4096, free[0])
            cuda.cuEventRecord(event, free[0])
            cuda.cuStreamWaitEvent(free[1], event, 0)
            cuda.cuMemsetD8Async(device, second, 4096, free[1])
            cuda.cuMemcpyDtoHAsync_v2(host.ctypes.data, device, 4096, free[1])
            while (result := cuda.result("cuStreamQuery", free[1])) == 600:
                time.sleep(0.0001)
            assert result == 0 and (host == second).all()
            blocking = cuda.new("cuStreamCreate", 0)
            cuda.cuMemsetD8Async(device, first, 4096, blocking)
            cuda.cuMemsetD8_v2(device, second, 4096)
            cuda.cuMemcpyDtoHAsync_v2(host.ctypes.data, device, 4096, blocking)
            cuda.cuStreamSynchronize(blocking)
            assert (host == second).all()
            for stream in (*free, blocking):
                cuda.cuStreamDestroy_v2(stream)
            cuda.cuEventDestroy_v2(event)
        """,
        seed=seed,
    )


def test_wrong_copies_fail(program) -> None:
    ended = program("""
        cuda = Cuda()
        device = cuda.new("cuMemAlloc_v2", 64)
        host = ctypes.addressof(buffer := ctypes.create_string_buffer(64))
        assert cuda.result("cuMemcpyDtoH_v2", host, device, 65) == 1
        assert cuda.result("cuMemcpyDtoH_v2", host, host, 64) == 1
        assert cuda.result("cuMemcpyHtoD_v2", host, device, 64) == 1
        assert cuda.result("cuMemcpyDtoD_v2", device, device + 1, 64) == 1
        assert cuda.result("cuMemcpy", device, 0, 64) == 1
        assert cuda.result("cuMemsetD8_v2", device + 60, 1, 5) == 1
        stream = cuda.new("cuStreamCreate", 1)
        cuda.cuStreamDestroy_v2(stream)
        assert cuda.result("cuMemcpyAsync", device, host, 64, stream) == 400
        rows = struct.pack("QQiiQQQQ", 0, 0, 1, 0, host, 0, 0, 8)
        rows += struct.pack("QQiiQQQQQQ", 0, 0, 2, 0, 0, device, 0, 16, 8, 4)
        ctypes.memmove(host, bytes(range(64)), 64)
        cuda.cuMemcpy2D_v2(rows)
        assert cuda.read(device + 16, 8) == bytes(range(8, 16))
        rows = rows[:-8] + struct.pack("Q", 5)
        assert cuda.result("cuMemcpy2DAsync_v2", rows, 0) == 1
    """)
    assert ended.logs[0].late_errors == []


def test_kernels_compute(program) -> None:
    ended = program(
        """
        cuda = Cuda()
        kernels = Kernels(cuda)
        of_type = {"sum_f32": "f4", "max_f64": "f8", "sum_f16": "f2", "sum_i8": "i1", "bxor_u64": "u8"}
        for name, dtype in of_type.items():
            random = np.random.default_rng(1)
            values = [(random.random(1000) * 100).astype(dtype) for _ in range(2)]
            left, right = (DeviceArray(cuda, v) for v in values)
            expected = {"s": np.add, "m": np.maximum, "b": np.bitwise_xor}[name[0]](*values)
            kernels.launch("palmette_" + name, left.address, right.address, left.address, 1000)
            assert (left.numpy() == expected).all(), name
        # Rounded to nearest even, subnormal numbers and infinity, against NumPy on all values.
        every = np.arange(65536, dtype=np.uint16).view(np.float16)
        for other in (np.float16(0.3), np.float16(1e-7), np.float16(60000)):
            left, right = DeviceArray(cuda, every), DeviceArray(cuda, np.full(65536, other))
            kernels.launch("palmette_sum_f16", left.address, right.address, left.address, 65536)
            with np.errstate(over="ignore", invalid="ignore"):
                expected = every + other
            assert ((left.numpy() == expected) | np.isnan(expected)).all()
            assert (np.isnan(left.numpy()) == np.isnan(expected)).all()
        a = np.array([0x3f80, 0x3f80, 0x7f7f], np.uint16)    # bfloat16: 1, 1, the largest
        b = np.array([0x3b80, 0x3c40, 0x7f7f], np.uint16)    # 2^-8, 3 * 2^-8, the largest
        left, right = DeviceArray(cuda, a), DeviceArray(cuda, b)
        kernels.launch("palmette_sum_bf16", left.address, right.address, left.address, 3)
        assert left.numpy().tolist() == [0x3f80, 0x3f82, 0x7f80]
        made = ctypes.c_uint64()
        assert cuda.result("cuModuleGetFunction", ctypes.byref(made), kernels.module, b"palmette_sum_f3") == 500
        assert cuda.result("cuModuleLoadData", ctypes.byref(made), b"nonsense") == 200
        # Memory of the host that isn't pinned is out of reach; told when somebody waits, from then on.
        host = np.zeros(3, np.uint16)
        kernels.launch("palmette_sum_bf16", left.address, host.ctypes.data, left.address, 3)
        assert cuda.result("cuCtxSynchronize") == 700
        """
    )
    assert ended.logs[0].kernels["palmette_sum_f16"] == 4
    assert len(ended.logs[0].late_errors) == 1


def test_memory_of_another_process(program) -> None:
    ended = program("""
        class Handle(ctypes.Structure):
            _fields_ = [("bytes", ctypes.c_char * 64)]
        there, back = os.pipe(), os.pipe()
        rank, children = ranks(2)
        cuda = Cuda()
        if rank == 0:
            address = cuda.new("cuMemAlloc_v2", 5000)
            gone = cuda.new("cuMemAlloc_v2", 5000)
            cuda.write(address, b"x" * 5000)
            handles = [ctypes.create_string_buffer(64) for _ in range(2)]
            cuda.cuIpcGetMemHandle(handles[0], address + 7)
            cuda.cuIpcGetMemHandle(handles[1], gone)
            made = ctypes.c_uint64()
            own = Handle.from_buffer_copy(handles[0])
            assert cuda.result("cuIpcOpenMemHandle_v2", ctypes.byref(made), own, 1) == 201
            cuda.cuMemFree_v2(gone)
            os.write(there[1], handles[0].raw + handles[1].raw)
            assert os.read(back[0], 1) == b"1"
            assert cuda.read(address, 5000) == b"y" * 5000
            cuda.cuMemFree_v2(address)
            os.write(there[1], b"2")
            wait_for(*children)
        else:
            raw = os.read(there[0], 128)
            handle, gone = Handle.from_buffer_copy(raw[:64]), Handle.from_buffer_copy(raw[64:])
            made = ctypes.c_uint64()
            assert cuda.result("cuIpcOpenMemHandle_v2", ctypes.byref(made), gone, 1) == 1
            opened = cuda.new("cuIpcOpenMemHandle_v2", handle, 1)
            assert cuda.new("cuIpcOpenMemHandle_v2", handle, 1) == opened
            host = np.zeros(5000, np.uint8)
            cuda.cuMemcpyDtoH_v2(host.ctypes.data, opened, 5000)
            assert (host == ord("x")).all()
            assert cuda.attribute(10, opened) == 0 and cuda.attribute(2, opened) == 2
            cuda.cuMemsetD8_v2(opened, ord("y"), 5000)
            cuda.cuCtxSynchronize()
            os.write(back[1], b"1")
            assert os.read(there[0], 1) == b"2"
            cuda.cuMemcpyDtoH_v2(host.ctypes.data, opened, 5000)   # pages stay until they're closed
            assert (host == ord("y")).all()
            assert cuda.result("cuIpcOpenMemHandle_v2", ctypes.byref(made), handle, 1) == 0
            for _ in range(3):
                cuda.cuIpcCloseMemHandle(opened)
            assert cuda.result("cuIpcCloseMemHandle", opened) == 1
            assert cuda.result("cuIpcOpenMemHandle_v2", ctypes.byref(made), handle, 1) == 1
    """)
    assert len(ended.logs) == 2
    assert [log.live(kind="opened") + log.live(kind="device") for log in ended.logs] == [[], []]


def test_failures_are_planted(program) -> None:
    program(
        """
        cuda = Cuda()
        made = ctypes.c_uint64()
        assert cuda.result("cuMemAlloc_v2", ctypes.byref(made), 8) == 0
        assert cuda.result("cuMemAlloc_v2", ctypes.byref(made), 8) == 999
        assert cuda.result("cuMemAlloc_v2", ctypes.byref(made), 8) == 0
        assert cuda.result("cuEventCreate", ctypes.byref(made), 0) == 2
        host = ctypes.create_string_buffer(64)
        assert cuda.result("cuMemHostRegister_v2", host, 64, 0) == 801
        assert cuda.result("cuIpcGetMemHandle", host, made.value) == 801
        """,
        fail=["cuMemAlloc_v2:2", "cuEventCreate:*:2"],
        no_pin=True,
        no_ipc=True,
    )


def test_an_unknown_setting_ends_the_program(program) -> None:
    ended = program("Cuda()", status=-signal.SIGABRT, device=2)
    assert "fake driver: PALMETTE_FAKE_CUDA: 'device=2' isn't known" in ended.text


def test_a_forked_child_has_no_device_and_the_library_can_be_unloaded(program) -> None:
    program("""
        def mapped():
            return "libcuda.so" in open("/proc/self/maps").read()
        cuda = Cuda()
        device = cuda.new("cuMemAlloc_v2", 64)
        for _ in range(50):
            cuda.cuMemsetD8Async(device, 1, 64, 0)
        child = os.fork()
        if child == 0:
            assert cuda.result("cuInit", 0) == 3
            made = ctypes.c_uint64()
            assert cuda.result("cuPointerGetAttribute", ctypes.byref(made), 2, device) == 3
            sys.exit(0)
        wait_for(child)
        cuda.cuMemsetD8Async(device, 1, 64, 0)
        assert mapped()
        libc = ctypes.CDLL(None)
        libc.dlclose(ctypes.c_void_p(cuda.library._handle))
        assert not mapped()
        assert len(os.listdir("/proc/self/task")) == 1
    """)


def test_several_devices(program) -> None:
    program(
        """
        cuda = Cuda()
        count = ctypes.c_int()
        cuda.cuDeviceGetCount(ctypes.byref(count))
        assert count.value == 2
        uuid = [ctypes.create_string_buffer(16) for _ in range(2)]
        for device in range(2):
            cuda.cuDeviceGetUuid_v2(uuid[device], device)
        assert [u.value for u in uuid] == [b"fake device 2", b"fake device 0"]
        other = cuda.new("cuDevicePrimaryCtxRetain", 1)
        cuda.cuCtxSetCurrent(other)
        far = cuda.new("cuMemAlloc_v2", 64)
        cuda.cuCtxSetCurrent(cuda.context)
        near = cuda.new("cuMemAlloc_v2", 64)
        assert cuda.attribute(9, far) == 1
        cuda.cuMemsetD8_v2(far, 5, 64)
        cuda.cuMemcpyDtoD_v2(near, far, 64)
        kernels = Kernels(cuda)
        kernels.launch("palmette_sum_i8", near, near, near, 64)
        cuda.cuCtxSynchronize()
        assert cuda.read(near, 64) == bytes([10] * 64)
        if sys.argv[-1] != "refused":
            cuda.cuCtxEnablePeerAccess(other, 0)
            assert cuda.result("cuCtxEnablePeerAccess", other, 0) == 704
            kernels.launch("palmette_sum_i8", near, far, near, 64)
            cuda.cuCtxSynchronize()
            assert cuda.read(near, 64) == bytes([15] * 64)
        made = ctypes.c_int()
        assert cuda.result("cuDeviceGet", ctypes.byref(made), 2) == 101
        """,
        devices=3,
        visible="2,0",
    )


def test_hip_on_the_same_machinery(program, tmp_path: Path) -> None:
    program("""
        hip = Cuda(device=None, library="libamdhip64.so.6")
        def attributes(address):
            told = ctypes.create_string_buffer(32)
            hip.hipPointerGetAttributes(told, address)
            return struct.unpack("iiQQiI", told.raw)
        host = np.arange(100)
        assert attributes(host.ctypes.data) == (0, 0, 0, 0, 0, 0)
        device = hip.new("hipMalloc", 800)
        assert attributes(device + 8)[:5] == (2, 0, device + 8, 0, 0)
        managed = hip.new("hipMallocManaged", 800, 1)
        assert attributes(managed)[:5] == (3, 0, managed, managed, 1)
        pinned = hip.new("hipHostMalloc", 800, 0)
        assert attributes(pinned)[0] == 1
        hip.hipMemcpy(device, host.ctypes.data, 800, 1)
        stream = hip.new("hipStreamCreateWithFlags", 1)
        hip.hipMemcpyAsync(pinned, device, 800, 2, stream)
        hip.hipStreamSynchronize(stream)
        assert ctypes.string_at(pinned, 800) == host.tobytes()
        for free in (device, managed):
            hip.hipFree(free)
        hip.hipHostFree(pinned)
        hip.hipStreamDestroy(stream)
    """)
    (log,) = fake.logs(tmp_path / "log", ".hip.json")
    assert log.calls("hipMalloc") == 1
    assert log.calls("cuMemAlloc_v2") == 0
    assert [item["kind"] for item in log.live()] == ["primary context"]
    assert log.contexts("libamdhip64") == []
