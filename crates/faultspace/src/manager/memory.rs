//! How much memory a process has.

/// Bytes in memory, with all pages that it shares with others.
pub(super) fn resident(process: i32) -> u64 {
    field(process, "status", "VmRSS:")
}

/// Bytes in memory, where a page that several share counts for each by its part.
pub(super) fn proportional(process: i32) -> u64 {
    match field(process, "smaps_rollup", "Pss:") {
        // Kernels without it: what it shares is counted for each.
        0 => resident(process),
        bytes => bytes,
    }
}

/// A field in kB of a file of the process; 0 where it has ended.
fn field(process: i32, file: &str, name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let number =
        value.and_then(|value| value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
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
