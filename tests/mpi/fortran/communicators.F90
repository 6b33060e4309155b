! Communicators that follow the machine, through the module of palmette.f90. Rank 0 prints `right`.
program communicators
  use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
  use mpi
  use palmette
  implicit none
  integer :: rank, ranks, group, leaders, ring, number, members, code, i, wrong, total
  real(c_double), allocatable :: seconds(:, :), far(:, :)

  call MPI_Init(code)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
  wrong = 0
  ! Hosts 0, 1, 0.
  call palmette_comm_split(MPI_COMM_WORLD, "node", -rank, group, leaders, code)
  if (code /= MPI_SUCCESS) call complain("comm_split", palmette_error())
  call MPI_Comm_rank(group, number, code)
  call MPI_Comm_size(group, members, code)
  if (members /= merge(1, 2, rank == 1) .or. number /= merge(1, 0, rank == 0)) call complain("comm_split", "members")
  if ((leaders == MPI_COMM_NULL) .neqv. (rank == 0)) call complain("comm_split", "leaders")
  if (leaders /= MPI_COMM_NULL) then
    call MPI_Comm_size(leaders, members, code)
    if (members /= 2) call complain("leaders", "members")
    call MPI_Comm_free(leaders, code)
  end if
  call MPI_Comm_free(group, code)
  ! By the topology rank 2, of rank 0's host, comes next.
  call palmette_reorder(MPI_COMM_WORLD, "greedy", ring, code)
  if (code /= MPI_SUCCESS) call complain("reorder", palmette_error())
  call MPI_Comm_rank(ring, number, code)
  if (number /= mod(3 - rank, 3)) call complain("reorder", "greedy")
  call MPI_Comm_free(ring, code)
  ! By distances rank 1 is next.
  allocate(far(ranks, ranks))
  far = 2
  do i = 1, ranks
    far(i, i) = 0
  end do
  far(2, 1) = 1
  far(1, 2) = 1
  call palmette_reorder(MPI_COMM_WORLD, "greedy", ring, code, far)
  call MPI_Comm_rank(ring, number, code)
  if (number /= rank) call complain("reorder", "by distances")
  call MPI_Comm_free(ring, code)
  allocate(seconds(merge(ranks, 0, rank == 0), merge(ranks, 0, rank == 0)))
  call palmette_distances(MPI_COMM_WORLD, 100_c_int64_t, seconds, code)
  if (code /= MPI_SUCCESS) call complain("distances", palmette_error())
  if (rank == 0) then
    if (seconds(2, 1) <= 0 .or. seconds(2, 1) /= seconds(1, 2)) call complain("distances", "seconds")
  end if
  ! What is wrong is told on all ranks.
  call palmette_comm_split(MPI_COMM_WORLD, "shelf", 0, group, leaders, code)
  if (code == MPI_SUCCESS .or. index(palmette_error(), "shelf") == 0) call complain("shelf", palmette_error())
  call palmette_reorder(MPI_COMM_WORLD, "ring", ring, code, far(:2, :2))
  if (code == MPI_SUCCESS) call complain("reorder", "a small matrix is taken")
  call MPI_Allreduce(wrong, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, code)
  if (rank == 0) print "(a)", trim(merge("right", "wrong", total == 0))
  call MPI_Finalize(code)

contains

  subroutine complain(what, why)
    character(*), intent(in) :: what, why
    wrong = wrong + 1
    print "(a, i0, 4a)", "rank ", rank, ": ", what, ": ", why
  end subroutine
end program
