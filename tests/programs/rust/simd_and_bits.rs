// Loops that the compiler turns into vectors, and bit tricks, at the highest level.
// build: -O
// exec:
pub fn main() {
    let bytes: Vec<u8> = (0..1000u32).map(|n| (n * 7919 >> 3) as u8).collect();
    let words: Vec<u32> = bytes.iter().map(|b| u32::from(*b) * 2654435761).collect();
    let floats: Vec<f32> = words.iter().map(|w| *w as f32 / 1e9).collect();
    println!("{}", bytes.iter().map(|b| u64::from(*b)).sum::<u64>());
    println!("{}", words.iter().fold(0u32, |a, b| a.rotate_left(5) ^ b));
    println!("{:?} {:?}", bytes.iter().max(), words.iter().min());
    println!("{}", bytes.iter().filter(|b| b.is_ascii_alphanumeric()).count());
    println!("{:.3}", floats.iter().zip(&floats[1..]).map(|(a, b)| a * b).sum::<f32>());
    println!("{}", bytes.iter().rposition(|b| *b == 77).unwrap_or(0));
    let reversed: Vec<u16> = words.iter().map(|w| (*w as u16).reverse_bits()).collect();
    println!("{}", reversed.iter().map(|w| w.count_ones() + w.trailing_zeros()).sum::<u32>());
    let mut sorted = words.clone();
    sorted.sort_unstable();
    println!("{} {}", sorted[10], sorted.is_sorted());
    let text: String = bytes.iter().map(|b| char::from(b % 26 + b'a')).collect();
    println!("{} {:?}", text.matches("ab").count(), text.find("qz"));
    println!("{:x}", bytes.iter().fold(0xcbf29ce484222325u64, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x100000001b3)));
    println!("{:?}", words.iter().map(|w| w.saturating_add(4_000_000_000)).filter(|w| *w == u32::MAX).count());
}
