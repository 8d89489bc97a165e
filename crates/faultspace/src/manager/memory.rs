//! The memory of a process: how much it uses, and its mappings.

/// Returns the resident bytes, including all shared pages.
pub(super) fn resident(process: i32) -> u64 {
    field(process, "status", "VmRSS:")
}

/// Returns the resident bytes, where a shared page counts proportionally.
pub(super) fn proportional(process: i32) -> u64 {
    match field(process, "smaps_rollup", "Pss:") {
        // Some kernels have no such file; then shared pages count fully.
        0 => resident(process),
        bytes => bytes,
    }
}

/// Returns a field in kB of a file of the process, in bytes; 0 if the process has ended.
fn field(process: i32, file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number =
        value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

/// A mapping of a process.
pub(super) struct Mapping {
    /// Its first address.
    pub begin: u64,
    /// The address after its last one.
    pub end: u64,
    /// Its rights, as `/proc` shows them.
    pub rights: String,
    /// Where it begins in its file.
    pub offset: u64,
    /// Its file or name; empty if it has none.
    pub file: String,
}

/// Returns the mappings of a process.
pub(super) fn mappings(pid: i32) -> Vec<Mapping> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let rights = words.next()?.to_owned();
        let offset = words.next()?;
        let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
        Some(Mapping {
            begin: number(begin)?,
            end: number(end)?,
            rights,
            offset: number(offset)?,
            file: words.nth(2).unwrap_or_default().to_owned(),
        })
    };
    text.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_until_it_ends() {
        let own = std::process::id() as i32;
        assert!(resident(own) > 100_000);
        assert!((1..=resident(own) * 2).contains(&proportional(own)));
        assert_eq!(resident(i32::MAX), 0);
        assert_eq!(proportional(i32::MAX), 0);
    }
}
