! Loops for test_structure.py, marked as in planted.c.
module grid
  implicit none
  real(8), volatile :: kept
contains
  subroutine smooth(a, b, n, m)
    integer, intent(in) :: n, m
    real(8), intent(inout) :: a(n, m)
    real(8), intent(in) :: b(n, m)
    integer :: i, j
    do j = 2, m - 1 ! loop columns
      do i = 2, n - 1 ! loop rows
        a(i, j) = 0.5d0 * (b(i - 1, j) + b(i + 1, j)) ! in grid::smooth columns rows
      end do
      kept = a(1, j) ! in grid::smooth columns
    end do
  end subroutine smooth
end module grid

subroutine relax(a, n)
  use grid, only: kept
  implicit none
  integer, intent(in) :: n
  real(8), intent(inout) :: a(n)
  integer :: step
  step = 0
  do while (step < n) ! loop steps
    step = step + 1
    a(step) = a(step) * 0.5d0 ! in relax steps
    kept = a(step) ! in relax steps
  end do
end subroutine relax

program heat
  use grid
  implicit none
  interface
    subroutine relax(a, n)
      integer, intent(in) :: n
      real(8), intent(inout) :: a(n)
    end subroutine relax
  end interface
  real(8) :: a(64, 64), b(64, 64)
  a = 1
  b = 2
  call smooth(a, b, 64, 64)
  call relax(a(:, 1), 64)
end program heat
