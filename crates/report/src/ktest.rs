//! KLEE's test format, so that tools for KLEE read our tests.

/// A test: the command line and the values of symbolic objects.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KTest {
    /// The command line.
    pub args: Vec<String>,
    /// Names and bytes of the symbolic objects.
    pub objects: Vec<(String, Vec<u8>)>,
}

const MAGIC: &[u8; 5] = b"KTEST";
const VERSION: u32 = 3;

/// Why bytes are not a valid test.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a test in KLEE's format: {what} at byte {offset}")]
pub struct KTestError {
    what: &'static str,
    offset: usize,
}

impl KTest {
    /// Encodes the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        let number = |out: &mut Vec<u8>, value: usize| {
            out.extend_from_slice(&(value as u32).to_be_bytes());
        };
        number(&mut out, VERSION as usize);
        number(&mut out, self.args.len());
        for arg in &self.args {
            number(&mut out, arg.len());
            out.extend_from_slice(arg.as_bytes());
        }
        // Symbolic arguments are objects of their own: their count and length stay 0.
        number(&mut out, 0);
        number(&mut out, 0);
        number(&mut out, self.objects.len());
        for (name, bytes) in &self.objects {
            number(&mut out, name.len());
            out.extend_from_slice(name.as_bytes());
            number(&mut out, bytes.len());
            out.extend_from_slice(bytes);
        }
        out
    }

    /// Decodes a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<KTest, KTestError> {
        let mut reader = Reader { bytes, at: 0 };
        let magic = reader.take(5, "the magic word")?;
        if magic != MAGIC && magic != b"BOUT\n" {
            return Err(KTestError {
                what: "no magic word",
                offset: 0,
            });
        }
        let version = reader.number("the version")?;
        if version > VERSION {
            return Err(KTestError {
                what: "a version newer than 3",
                offset: 5,
            });
        }
        let count = reader.number("the number of arguments")?;
        let mut test = KTest::default();
        for _ in 0..count {
            let arg = reader.counted("an argument")?;
            test.args.push(String::from_utf8_lossy(arg).into_owned());
        }
        if version >= 2 {
            reader.number("the number of symbolic arguments")?;
            reader.number("the length of symbolic arguments")?;
        }
        let count = reader.number("the number of objects")?;
        for _ in 0..count {
            let name = String::from_utf8_lossy(reader.counted("a name")?).into_owned();
            let bytes = reader.counted("an object")?.to_vec();
            test.objects.push((name, bytes));
        }
        Ok(test)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], KTestError> {
        let end = self
            .at
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        let end = end.ok_or(KTestError {
            what,
            offset: self.at,
        })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, what: &'static str) -> Result<u32, KTestError> {
        let bytes = self.take(4, what)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn counted(&mut self, what: &'static str) -> Result<&'a [u8], KTestError> {
        let len = self.number(what)? as usize;
        self.take(len, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_klee() {
        let test = KTest {
            args: vec!["a.bc".to_owned()],
            objects: vec![("x".to_owned(), vec![1, 2, 3, 4])],
        };
        let expected = b"KTEST\0\0\0\x03\0\0\0\x01\0\0\0\x04a.bc\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x01x\0\0\0\x04\x01\x02\x03\x04";
        assert_eq!(test.to_bytes(), expected);
        assert_eq!(KTest::from_bytes(expected), Ok(test));
    }

    #[test]
    fn broken_files_are_refused_with_the_place() {
        let bytes = KTest {
            args: vec![],
            objects: vec![("x".into(), vec![7; 9])],
        }
        .to_bytes();
        for cut in 0..bytes.len() {
            assert!(KTest::from_bytes(&bytes[..cut]).is_err());
        }
        let error = KTest::from_bytes(b"nonsense").unwrap_err();
        assert_eq!(
            error.to_string(),
            "not a test in KLEE's format: no magic word at byte 0"
        );
    }
}
