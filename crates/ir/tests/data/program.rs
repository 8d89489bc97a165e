// rustc -g -O --crate-type lib --emit=llvm-bc -C panic=abort program.rs
#![no_std]
pub struct Table { pub count: u32, pub rows: [u16; 4] }
pub static mut TABLE: Table = Table { count: 3, rows: [1, 2, 3, 4] };
pub enum Shape { Circle(f64), Square { side: u64 }, Nothing }
#[unsafe(no_mangle)]
pub static SHAPE: Shape = Shape::Square { side: 3 };
#[unsafe(no_mangle)]
pub fn area(shape: &Shape) -> u64 {
    match shape { Shape::Circle(radius) => *radius as u64, Shape::Square { side } => side.pow(2), Shape::Nothing => 0 }
}
#[unsafe(no_mangle)]
pub fn first(rows: &[u16], index: usize) -> u16 { rows[index] }
#[unsafe(no_mangle)]
pub fn total(rows: &[u32]) -> u64 { rows.iter().map(|&row| u64::from(row)).sum() }
#[unsafe(no_mangle)]
pub fn bump() -> u32 { unsafe { TABLE.count += 1; TABLE.count } }
