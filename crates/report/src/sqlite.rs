//! A database of one small table in SQLite's file format: KLEE's `run.stats`.

/// The page size; schema and rows have a page each.
const PAGE: usize = 4096;
/// Size of the file header, on the first page.
const HEADER: usize = 100;

/// A value of a row.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Cell {
    /// An integer.
    Integer(i64),
    /// A real number.
    Real(f64),
}

/// A column: name and value of the one row. Its type is that of the value.
pub type Column = (&'static str, Cell);

/// Creates the file of a database that has one table with one row. `None` if it does not fit in two
/// pages.
pub fn database_of_one_row(table: &str, columns: &[Column]) -> Option<Vec<u8>> {
    let typed = columns.iter().map(|(name, value)| match value {
        Cell::Integer(_) => format!("{name} INTEGER"),
        Cell::Real(_) => format!("{name} REAL"),
    });
    let create = format!(
        "CREATE TABLE {table} ({})",
        typed.collect::<Vec<_>>().join(",")
    );
    let schema = record(&[
        Field::Text("table"),
        Field::Text(table),
        Field::Text(table),
        Field::Value(Cell::Integer(2)),
        Field::Text(&create),
    ]);
    let row: Vec<Field<'_>> = columns
        .iter()
        .map(|(_, value)| Field::Value(*value))
        .collect();
    let mut file = leaf_page(&schema, HEADER)?;
    file[..HEADER].copy_from_slice(&file_header());
    file.extend(leaf_page(&record(&row), 0)?);
    Some(file)
}

enum Field<'t> {
    Text(&'t str),
    Value(Cell),
}

fn file_header() -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(b"SQLite format 3\0");
    header[16..18].copy_from_slice(&(PAGE as u16).to_be_bytes());
    // Versions 1 (no write-ahead log), no reserved bytes, and the
    // three fixed fractions of a payload.
    header[18..24].copy_from_slice(&[1, 1, 0, 64, 32, 32]);
    let mut number =
        |at: usize, value: u32| header[at..at + 4].copy_from_slice(&value.to_be_bytes());
    let (changes, pages, cookie, schema_format, utf8, version) = (1, 2, 1, 4, 1, 3_040_000);
    number(24, changes);
    number(28, pages);
    number(40, cookie);
    number(44, schema_format);
    number(56, utf8);
    number(92, changes);
    number(96, version);
    header
}

/// Creates a leaf page of a table with one row, whose id is 1. The cell is at the end of the page.
fn leaf_page(record: &[u8], header_at: usize) -> Option<Vec<u8>> {
    // Longer payloads continue on overflow pages, which are not written.
    const MOST: usize = PAGE - 35;
    let mut cell = Vec::new();
    varint(record.len() as u64, &mut cell);
    varint(1, &mut cell);
    cell.extend_from_slice(record);
    if record.len() > MOST || header_at + 10 + cell.len() > PAGE {
        return None;
    }
    let start = PAGE - cell.len();
    let mut page = vec![0; PAGE];
    let offset = (start as u16).to_be_bytes();
    let header = &mut page[header_at..];
    header[0] = 13;
    header[3..5].copy_from_slice(&1u16.to_be_bytes());
    header[5..7].copy_from_slice(&offset);
    header[8..10].copy_from_slice(&offset);
    page[start..].copy_from_slice(&cell);
    Some(page)
}

/// Encodes a record: the types of its fields, then their values.
fn record(fields: &[Field<'_>]) -> Vec<u8> {
    let (mut types, mut values) = (Vec::new(), Vec::new());
    for field in fields {
        match field {
            Field::Text(text) => {
                varint(13 + 2 * text.len() as u64, &mut types);
                values.extend_from_slice(text.as_bytes());
            }
            Field::Value(Cell::Integer(value)) => {
                types.push(6);
                values.extend_from_slice(&value.to_be_bytes());
            }
            Field::Value(Cell::Real(value)) => {
                types.push(7);
                values.extend_from_slice(&value.to_be_bytes());
            }
        }
    }
    // The size of the head includes itself.
    let mut head = Vec::new();
    let size = types.len() as u64 + 1;
    varint(if size > 127 { size + 1 } else { size }, &mut head);
    head.extend(types);
    head.extend(values);
    head
}

fn varint(value: u64, out: &mut Vec<u8>) {
    let groups = (70 - value.leading_zeros()).max(7) / 7;
    for group in (0..groups).rev() {
        let more = if group > 0 { 0x80 } else { 0 };
        out.push((value >> (7 * group)) as u8 & 0x7f | more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_groups_as_they_need() {
        for (value, bytes) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x81, 0]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x81, 0x80, 0]),
        ] {
            let mut out = Vec::new();
            varint(value, &mut out);
            assert_eq!(out, bytes, "{value}");
        }
    }

    #[test]
    fn a_table_takes_two_pages() {
        let file = database_of_one_row("stats", &[("A", Cell::Integer(5)), ("B", Cell::Real(0.5))])
            .unwrap();
        assert_eq!(file.len(), 2 * PAGE);
        // The row: 19 bytes behind their length, the id 1, two types behind
        // the size of the head, two values.
        let mut row = vec![19, 1, 3, 6, 7];
        row.extend(5i64.to_be_bytes());
        row.extend(0.5f64.to_be_bytes());
        assert_eq!(file[2 * PAGE - row.len()..], row);
        let names = vec![("a_column_with_a_long_name", Cell::Integer(0)); 200];
        assert_eq!(database_of_one_row("stats", &names), None);
    }
}
