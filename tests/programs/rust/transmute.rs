// Raw bytes are read as a structure: alignment and lengths are checked, one length is not.
// build: -O
// run:
// finding: out-of-bounds 30
unsafe extern "C" {
    fn everett_make_symbolic(place: *mut u8, size: usize, name: *const u8);
}

fn symbolic<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // SAFETY: the array has that many bytes, and the name ends in a zero.
    unsafe { everett_make_symbolic(bytes.as_mut_ptr(), N, c"input".as_ptr().cast()) };
    bytes
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    kind: u8,
    length: u8,
}

fn checksum(packet: &[u8]) -> u8 {
    assert!(packet.len() >= 2);
    // SAFETY: there are two bytes, and any bytes make a header.
    let header = unsafe { packet.as_ptr().cast::<Header>().read_unaligned() };
    let mut sum = 0u8;
    if header.kind == 4 {
        for at in 0..usize::from(header.length) {
            sum ^= unsafe { packet.as_ptr().add(2 + at).read_volatile() };
        }
    }
    sum
}

pub fn main() {
    let bytes = symbolic::<4>().to_vec().into_boxed_slice();
    std::process::exit((checksum(&bytes) > 0x80) as i32);
}
