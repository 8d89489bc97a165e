// Formatting of numbers, floats above all, and 128-bit arithmetic.
// build:
// build: -O
// exec:
#[derive(Debug, Clone, PartialEq, Default)]
struct Point {
    x: f64,
    label: Option<String>,
    nested: Vec<(u8, char)>,
}

pub fn main() {
    for value in [0.0, -0.0, 1.0, 0.1, 1e21, 1.5e-7, f64::MAX, f64::MIN_POSITIVE, f64::NAN, f64::NEG_INFINITY, 1.0 / 3.0] {
        println!("{value} {value:?} {value:e} {value:.3} {value:10.2}|{value:<+8.1}|");
    }
    println!("{} {:?} {}", 0.1f32 + 0.2f32, 16777217f32, f32::EPSILON);
    println!("{:#x} {:#010b} {:o} {:X} {:+} {:>6}|{:^6}|{:*<6}|", 255, 5, 64, 48879, 7, 1, 2, 3);
    println!("{:?} {:?}", "quote\" \n \u{1F600} \u{7f}", '\'');
    let point = Point { x: 1.5, label: Some("p".into()), nested: vec![(1, 'a'), (2, 'b')] };
    println!("{point:?}\n{point:#?}\n{:?}", Point::default());
    let width = 12;
    println!("{:>width$}|{:.*}|{:02}:{:02}", "right", 2, 3.14159, 7, 5);
    let big: i128 = -170141183460469231731687303715884105728;
    println!("{big} {} {:x}", big.wrapping_sub(1), u128::MAX);
    let product = 123456789012345678901234567890u128 * 1000000007;
    println!("{product} {} {}", product / 998244353, product % 998244353);
    println!("{:?} {:?}", i128::MAX.checked_mul(2), (-7i128).div_euclid(2));
    println!("{} {}", (1u128 << 100) as f64, -3.7e25f64 as i128);
    println!("{} {} {}", 300i32 as u8, -1i64 as u32, 1e20 as i32);
    println!("{:?} {:?} {:?}", "3.25".parse::<f64>(), "1e400".parse::<f64>(), "x".parse::<f32>().is_err());
    println!("{:?} {:?}", "+12".parse::<u8>(), "256".parse::<u8>());
    println!("{:.4} {:.4} {:.4} {:.4}", 2f64.sqrt(), 1f64.exp(), 2f64.powf(0.5), 1f64.sin());
    println!("{} {} {} {}", 2.5f64.round(), -2.5f64.round_ties_even(), 7.9f64.trunc(), 5f64.rem_euclid(-3.0));
    println!("{} {} {}", 40u32.leading_zeros(), 0xf0u8.count_ones(), 0x12345678u32.swap_bytes().rotate_left(4));
}
