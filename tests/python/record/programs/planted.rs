// Loops and inlined calls for test_structure.py, marked as in planted.c.
mod grid {
    use std::hint::black_box;

    static mut STEP: usize = 0;
    const DONE: *mut usize = &raw mut STEP;

    #[inline(never)]
    pub fn smooth(a: &mut [f64], steps: usize) {
        for step in 0..steps { // loop steps
            for cell in a.iter_mut() { // loop cells
                *cell = *cell * 0.5 + 1.0; // in planted::grid::smooth steps cells
            }
            unsafe { DONE.write_volatile(step) };
        }
    }

    #[inline(always)]
    fn row_sum(row: &[f64]) -> f64 {
        let mut sum = 0.0;
        let mut at = 0;
        while at < row.len() { // loop row
            sum += row[at]; // in planted::grid::matrix_sum rows planted::grid::row_sum row
            at += 1;
        }
        sum
    }

    #[inline(never)]
    pub fn matrix_sum(a: &[f64], n: usize) -> f64 {
        let mut sum = 0.0;
        let mut i = 0;
        while i < n { // loop rows
            sum += row_sum(&a[i * n..(i + 1) * n]);
            black_box(&sum);
            i += 1;
        }
        sum
    }
}

fn main() {
    let n = std::hint::black_box(64);
    let mut a = vec![1.0; n * n];
    grid::smooth(&mut a, n);
    println!("{}", grid::matrix_sum(&a, n));
}
