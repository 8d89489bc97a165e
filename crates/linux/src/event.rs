//! Events of `poll`, as bits.

pub const IN: u16 = 0x1;
pub const PRIORITY: u16 = 0x2;
pub const OUT: u16 = 0x4;
pub const ERROR: u16 = 0x8;
pub const HANG_UP: u16 = 0x10;
pub const INVALID: u16 = 0x20;
pub const READ_NORMAL: u16 = 0x40;
pub const READ_BAND: u16 = 0x80;
pub const WRITE_NORMAL: u16 = 0x100;
pub const WRITE_BAND: u16 = 0x200;
pub const READ_HANG_UP: u16 = 0x2000;
/// Readable.
pub const READING: u16 = IN | READ_NORMAL;
/// Writable.
pub const WRITING: u16 = OUT | WRITE_NORMAL;
/// All events, for a close.
pub const ALL: u16 = 0xffff;
