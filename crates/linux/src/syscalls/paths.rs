use crate::table::Row;
pub const ROWS: &[Row] = &[];
