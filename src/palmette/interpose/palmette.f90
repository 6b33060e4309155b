! Communicators that follow the machine, and regions of the program, from Fortran: the functions of palmette.h, which
! says what they do.
!
!     use mpi
!     use palmette
!     call palmette_comm_split(MPI_COMM_WORLD, "leaf", 0, rack, leaders, ierror)
!     call palmette_distances(MPI_COMM_WORLD, 65536_int64, seconds, ierror)
!     call palmette_reorder(MPI_COMM_WORLD, "ring", ring, ierror, seconds)
!     call palmette_region_begin("solve")
!     call palmette_region_end("solve")
!
! Compile this file with the program's compiler (`palmette compose --cflags` prints its folder), and link or run with
! palmette as from C. Communicators are integers; with mpi_f08 pass comm%MPI_VAL. `ierror` is MPI_SUCCESS or an error of
! MPI's classes, of which palmette_error() says in words what went wrong.
module palmette
  use, intrinsic :: iso_c_binding, only: c_char, c_double, c_f_pointer, c_int, c_int64_t, c_loc, c_null_char, &
                                         c_null_ptr, c_ptr, c_size_t
  implicit none
  private
  public :: palmette_comm_split, palmette_reorder, palmette_distances, palmette_error
  public :: palmette_region_begin, palmette_region_end

  interface
    function c_comm_split(comm, level, key, group, leaders) bind(C, name="palmette_fortran_comm_split") result(code)
      import :: c_char, c_int
      integer(c_int), value :: comm, key
      character(kind=c_char), intent(in) :: level(*)
      integer(c_int), intent(out) :: group, leaders
      integer(c_int) :: code
    end function
    function c_reorder(comm, order, distances, cells, reordered) bind(C, name="palmette_fortran_reorder") result(code)
      import :: c_char, c_int, c_int64_t, c_ptr
      integer(c_int), value :: comm
      integer(c_int64_t), value :: cells
      character(kind=c_char), intent(in) :: order(*)
      type(c_ptr), value :: distances
      integer(c_int), intent(out) :: reordered
      integer(c_int) :: code
    end function
    function c_distances(comm, bytes, seconds, cells) bind(C, name="palmette_fortran_distances") result(code)
      import :: c_int, c_int64_t, c_ptr
      integer(c_int), value :: comm
      integer(c_int64_t), value :: bytes, cells
      type(c_ptr), value :: seconds
      integer(c_int) :: code
    end function
    function c_region_begin(name) bind(C, name="palmette_region_begin") result(code)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: code
    end function
    function c_region_end(name) bind(C, name="palmette_region_end") result(code)
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int) :: code
    end function
    function c_error() bind(C, name="palmette_error") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function
    function c_strlen(text) bind(C, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! Splits `comm` by a level of the machine: `group` is this rank's, in the order of `key`, then of ranks; `leaders` has
  ! rank 0 of each group, and is MPI_COMM_NULL elsewhere.
  subroutine palmette_comm_split(comm, level, key, group, leaders, ierror)
    integer, intent(in) :: comm, key
    character(*), intent(in) :: level
    integer, intent(out) :: group, leaders, ierror
    ierror = c_comm_split(comm, trim(level) // c_null_char, key, group, leaders)
  end subroutine

  ! The processes of `comm` in an order: greedy, ring, recursive_doubling, binomial_gather or binomial_bcast. With
  ! `distances`, which rank 0 passes, by these; of rank i to rank j at (j + 1, i + 1), the larger of both directions.
  subroutine palmette_reorder(comm, order, reordered, ierror, distances)
    integer, intent(in) :: comm
    character(*), intent(in) :: order
    integer, intent(out) :: reordered, ierror
    real(c_double), intent(in), contiguous, optional, target :: distances(:, :)
    type(c_ptr) :: address
    integer(c_int64_t) :: cells
    address = c_null_ptr
    cells = 0
    if (present(distances)) then
      cells = size(distances, kind=c_int64_t)
      if (cells > 0) address = c_loc(distances)
    end if
    ierror = c_reorder(comm, trim(order) // c_null_char, address, cells, reordered)
  end subroutine

  ! Seconds of half a round trip of `bytes` between each pair of ranks: at rank 0 a square array, of any size elsewhere.
  subroutine palmette_distances(comm, bytes, seconds, ierror)
    integer, intent(in) :: comm
    integer(c_int64_t), intent(in) :: bytes
    real(c_double), intent(inout), contiguous, target :: seconds(:, :)
    integer, intent(out) :: ierror
    type(c_ptr) :: address
    address = c_null_ptr
    if (size(seconds) > 0) address = c_loc(seconds)
    ierror = c_distances(comm, bytes, address, size(seconds, kind=c_int64_t))
  end subroutine

  ! A region of the program begins, or ends: what lies between is recorded as one.
  subroutine palmette_region_begin(name, ierror)
    character(*), intent(in) :: name
    integer, intent(out), optional :: ierror
    integer(c_int) :: code
    code = c_region_begin(trim(name) // c_null_char)
    if (present(ierror)) ierror = code
  end subroutine

  subroutine palmette_region_end(name, ierror)
    character(*), intent(in) :: name
    integer, intent(out), optional :: ierror
    integer(c_int) :: code
    code = c_region_end(trim(name) // c_null_char)
    if (present(ierror)) ierror = code
  end subroutine

  ! A sentence about the last error of this thread.
  function palmette_error() result(text)
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    type(c_ptr) :: address
    address = c_error()
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate(character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

end module
