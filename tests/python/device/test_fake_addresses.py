"""Where the fake libcuda puts memory: wherever a real one may."""

from __future__ import annotations


def test_addresses_are_those_that_a_real_driver_may_give(program) -> None:
    program("""
        cuda = Cuda()
        # Small ones share a page, where bytes between them are nobody's; what ends there may be where another begins.
        small = [cuda.new("cuMemAlloc_v2", size) for size in (64, 256, 300)]
        assert [address - small[0] for address in small] == [0, 256, 512]
        kind = ctypes.c_uint64()
        assert cuda.result("cuPointerGetAttribute", ctypes.byref(kind), 2, small[0] + 64) == 1
        assert cuda.result("cuMemsetD8_v2", small[1], 1, 257) == 1
        for i, address in enumerate(small):
            cuda.cuMemsetD8_v2(address, i + 1, 64)
        cuda.cuCtxSynchronize()
        assert [cuda.read(address, 64) for address in small] == [bytes([i + 1]) * 64 for i in range(3)]
        # Freed ones are used again at once.
        cuda.cuMemFree_v2(small[1])
        assert cuda.new("cuMemAlloc_v2", 200) == small[1]
        # And addresses of the host's, once it has given them back.
        libc = ctypes.CDLL(None)
        libc.mmap.restype = ctypes.c_void_p
        def host(size):
            none = ctypes.c_void_p(None)
            return libc.mmap(none, ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0))
        size = 64 << 20
        was = host(size)
        libc.munmap(ctypes.c_void_p(was), ctypes.c_size_t(size))
        device = cuda.new("cuMemAlloc_v2", size)
        assert device <= was < device + size or was <= device < was + size, (hex(was), hex(device))
        cuda.cuMemFree_v2(device)
        again = host(size)
        assert again <= device < again + size or device <= again < device + size, (hex(device), hex(again))
    """)
