"""The functions of MPI 4.1 that ask for the status of several requests, which older MPIs lack, on two ranks."""

from mpi4py import MPI

comm, world = MPI.COMM_WORLD, MPI.COMM_WORLD.Get_rank()
peer = 1 - world
cases = wrong = 0


def expect(found, wanted):
    """Count a case."""
    global cases, wrong
    cases += 1
    if found != wanted:
        wrong += 1
        print(f"rank {world}: {found!r} where {wanted!r} is right")


for several in (1, 3):
    buffers = [bytearray(8) for _ in range(several)]
    requests = [comm.Irecv(buffer, peer, tag) for tag, buffer in enumerate(buffers)]
    expect(MPI.Request.Get_status_all(requests), False)
    expect(MPI.Request.Get_status_any(requests)[1], False)
    expect(MPI.Request.Get_status_some(requests), [])
    comm.Barrier()
    comm.Send(bytes([several] * 8), peer, several - 1)
    statuses = [MPI.Status() for _ in requests]
    while not MPI.Request.Get_status_some(requests):
        pass
    expect(MPI.Request.Get_status_some(requests, statuses), [several - 1])
    expect((statuses[0].Get_source(), statuses[0].Get_tag(), statuses[0].Get_count()), (peer, several - 1, 8))
    expect(MPI.Request.Get_status_any(requests), (several - 1, True))
    expect(MPI.Request.Get_status_all(requests), several == 1)
    comm.Barrier()
    for tag in range(several - 1):
        comm.Send(bytes(8), peer, tag)
    while not MPI.Request.Get_status_all(requests, statuses):
        pass
    expect([status.Get_tag() for status in statuses], list(range(several)))
    MPI.Request.Waitall(requests)
    expect(MPI.Request.Get_status_all(requests), True)
    status = MPI.Status()
    status.source, status.tag, status.error = 1, 2, 3
    expect(MPI.Request.Get_status_any(requests, status), (MPI.UNDEFINED, True))
    expect((status.source, status.tag), (MPI.ANY_SOURCE, MPI.ANY_TAG))
    # Intel MPI leaves it, alone too.
    if "Intel" not in MPI.Get_library_version():
        expect(status.error, MPI.SUCCESS)
    expect(MPI.Request.Get_status_some(requests), None)
all_wrong = comm.reduce(wrong)
if world == 0:
    print(f"{2 * cases} cases, {all_wrong} wrong")
