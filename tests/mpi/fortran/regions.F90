! Regions from Fortran, with names of several lengths.
program regions
  use mpi
  use palmette
  implicit none
  integer :: ierror, i, code
  character(12) :: name
  call MPI_Init(ierror)
  call palmette_region_begin("outer")
  do i = 1, 7
    write (name, '(a, i0)') "inner ", modulo(i, 2)
    call palmette_region_begin(name)
    call palmette_region_end(name, code)
    if (code /= MPI_SUCCESS) print *, "wrong"
  end do
  call palmette_region_end("never begun", code)
  if (code /= MPI_ERR_ARG) print *, "wrong"
  call palmette_region_end("outer")
  call MPI_Finalize(ierror)
  print *, "right"
end program
