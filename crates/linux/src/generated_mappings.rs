//! Generates `/proc/PID/maps`, `smaps` and `auxv`, of an explored process from its memory and of a
//! native one from the real process.

use everett_ir::address::{FUNCTION_BASE, FUNCTION_STRIDE};
use everett_vm::{BREAK_END, BREAK_START, Backing, Memory, ObjectKind};
use std::fmt::Write;

use crate::boot::AUXILIARY;
use crate::bytes::Bytes;
use crate::files::{About, Generated};
use crate::guest::GuestMapping;
use crate::kernel::{Kernel, Stop};

const PAGE: u64 = 4096;

impl Kernel<'_, '_> {
    /// The contents of a generated file about the memory of the calling process; `None` if it is
    /// another file.
    pub(crate) fn generate_of_memory(&mut self, what: Generated) -> Result<Option<Bytes>, Stop> {
        let Generated::Process(pid, about) = what else {
            return Ok(None);
        };
        let is_of_memory = matches!(
            about,
            About::Mappings | About::DetailedMappings | About::Auxiliary
        );
        if !is_of_memory {
            return Ok(None);
        }
        if pid != self.process().pid {
            self.refuse("open", "the memory of another process in /proc");
            return Ok(Some(Bytes::default()));
        }
        if about == About::Auxiliary {
            return Ok(Some(Bytes::from_concrete(&self.auxiliary_vector()?)));
        }
        let name = String::from_utf8_lossy(&self.process().execution.name).into_owned();
        let mappings = match &mut self.guest {
            Some(guest) => guest.mappings(),
            None => {
                let code = self.vm.image.program().functions.len() as u64 * FUNCTION_STRIDE;
                mappings_of(self.vm.memory, code, &name)
            }
        };
        let text = mappings.iter().fold(String::new(), |mut text, mapping| {
            push_mapping(&mut text, mapping);
            if about == About::DetailedMappings {
                push_details(&mut text, mapping);
            }
            text
        });
        Ok(Some(Bytes::from_concrete(text.as_bytes())))
    }

    /// The auxiliary vector, at the end of the block that the program was started with.
    fn auxiliary_vector(&mut self) -> Result<Vec<u8>, Stop> {
        let ids = self.process().started_as;
        if let Some(guest) = &mut self.guest {
            // The real kernel shows the users that the process has there.
            let mut vector = guest.auxiliary_vector();
            for entry in vector.chunks_exact_mut(16) {
                let key = entry
                    .first_chunk()
                    .map_or(0, |key| u64::from_le_bytes(*key));
                if let Some(value) = ids.entry(key) {
                    entry[8..].copy_from_slice(&value.to_le_bytes());
                }
            }
            return Ok(vector);
        }
        let execution = &self.process().execution;
        let argc = execution.args.len();
        let words = 1 + argc + 1 + execution.env.len() + 1;
        let size = 8 * (words + 2 * AUXILIARY) as u64;
        let blocks: Vec<u64> = self
            .vm
            .memory
            .live_objects(ObjectKind::Kernel)
            .filter(|object| object.size == size)
            .map(|object| object.start)
            .collect();
        for start in blocks {
            if self.read_u64(start)? == argc as u64 {
                return self.read_bytes(start + 8 * words as u64, 16 * AUXILIARY as u64);
            }
        }
        Ok(Vec::new())
    }
}

/// The mappings that the objects of an explored process stand for. Every object has pages of its
/// own, so stack and heap have one entry for each run of objects.
fn mappings_of(memory: &Memory, code: u64, program: &str) -> Vec<GuestMapping> {
    let entry = |start: u64, size: u64, rights: &str, name: &str| GuestMapping {
        start: start / PAGE * PAGE,
        end: start.saturating_add(size).next_multiple_of(PAGE),
        rights: rights.to_owned(),
        offset: 0,
        name: name.to_owned(),
    };
    let mut all = vec![entry(FUNCTION_BASE, code.max(1), "r-xp", program)];
    for (start, size) in memory.live_between(0, u64::MAX, 1) {
        let is_main = memory.stack_of(start).is_none_or(|stack| stack == 0);
        let kind = memory.object_at(start, 1).map(|object| object.kind);
        let (rights, name) = match kind {
            None | Some(ObjectKind::Mapping) => continue,
            Some(ObjectKind::Constant) => ("r--p", program),
            Some(ObjectKind::Global) => ("rw-p", program),
            Some(ObjectKind::Heap) => ("rw-p", "[heap]"),
            Some(ObjectKind::Stack | ObjectKind::Arguments | ObjectKind::Kernel) if is_main => {
                ("rw-p", "[stack]")
            }
            Some(_) => ("rw-p", ""),
        };
        all.push(entry(start, size, rights, name));
    }
    for object in memory.live_objects(ObjectKind::Mapping) {
        let runs = memory.mappings_in(object.start, object.size);
        for run in runs.unwrap_or_default() {
            let is_break = (BREAK_START..BREAK_END).contains(&run.start);
            let name = if is_break { "[heap]" } else { "" };
            all.push(entry(run.start, run.size, &rights_of(&run), name));
        }
    }
    all.sort_by_key(|mapping| mapping.start);
    all.dedup_by(|next, last| {
        let joins = last.end == next.start && last.name == next.name && last.rights == next.rights;
        if joins {
            last.end = next.end;
        }
        joins
    });
    all
}

fn rights_of(mapping: &everett_vm::Mapping) -> String {
    let bits = mapping.traits.protection.0;
    let mut rights: String = [(1, 'r'), (2, 'w'), (4, 'x')]
        .map(|(bit, letter)| if bits & bit != 0 { letter } else { '-' })
        .iter()
        .collect();
    rights.push(match mapping.traits.backing {
        Backing::Shared { .. } => 's',
        _ => 'p',
    });
    rights
}

fn push_mapping(text: &mut String, mapping: &GuestMapping) {
    /// The column at which names start.
    const NAME: usize = 73;
    let GuestMapping {
        start,
        end,
        rights,
        offset,
        name,
    } = mapping;
    let line = format!("{start:08x}-{end:08x} {rights} {offset:08x} 00:00 0 ");
    let _ = match name.as_str() {
        "" => writeln!(text, "{line}"),
        name => writeln!(text, "{line:NAME$}{name}"),
    };
}

/// What `smaps` has about a mapping: all its pages are in memory, and private.
fn push_details(text: &mut String, mapping: &GuestMapping) {
    let size = (mapping.end - mapping.start) / 1024;
    let rows = [
        ("Size", size),
        ("KernelPageSize", PAGE / 1024),
        ("MMUPageSize", PAGE / 1024),
        ("Rss", size),
        ("Pss", size),
        ("Pss_Dirty", size),
        ("Shared_Clean", 0),
        ("Shared_Dirty", 0),
        ("Private_Clean", 0),
        ("Private_Dirty", size),
        ("Referenced", size),
        ("Anonymous", size),
        ("KSM", 0),
        ("LazyFree", 0),
        ("AnonHugePages", 0),
        ("ShmemPmdMapped", 0),
        ("FilePmdMapped", 0),
        ("Shared_Hugetlb", 0),
        ("Private_Hugetlb", 0),
        ("Swap", 0),
        ("SwapPss", 0),
        ("Locked", 0),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{:<16}{value:8} kB", format!("{name}:"));
    }
    let _ = writeln!(text, "THPeligible:    {:8}", 0);
    let letters = [('r', "rd"), ('w', "wr"), ('x', "ex")];
    let mut flags: Vec<&str> = letters
        .into_iter()
        .filter(|(letter, _)| mapping.rights.contains(*letter))
        .map(|(_, flag)| flag)
        .collect();
    flags.extend(["mr", "mw", "me"]);
    let _ = writeln!(text, "VmFlags: {} ", flags.join(" "));
}
