// With panic=abort an unwrap on some input aborts, which is a panic all the same.
// build: -C panic=abort
// alone: few programs abort
// run:
// paths: 2
// finding: panic 22
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

pub fn main() {
    let [byte] = symbolic::<1>();
    let numbers: &[u8] = if byte == 200 { &[] } else { &[1, 2] };
    println!("{}", numbers.len());
    std::process::exit(numbers.iter().max().copied().unwrap().into());
}
