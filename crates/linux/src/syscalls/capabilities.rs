//! `capget`, `capset`, and the requests of `prctl` about capabilities.

use everett_vm::Value;

use crate::capabilities::{ALL, Capabilities, SETPCAP, secure};
use crate::errno::Errno;
use crate::kernel::{Answer, Kernel, Stop};
use crate::table::ArgKind::Pointer;
use crate::table::{Call, Row};

/// Rows of this family.
pub const ROWS: &[Row] = &[
    Row::new("capget", 125, &[Pointer, Pointer], &[], capget),
    Row::new("capset", 126, &[Pointer, Pointer], &[], capset)
        .without("capabilities of single threads"),
];

/// Versions of the interface; the first one has 32 bits.
const FIRST_VERSION: u32 = 0x1998_0330;
const SECOND_VERSION: u32 = 0x2007_1026;
const THIRD_VERSION: u32 = 0x2008_0522;

fn capget(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let (pid, words) = match kernel.capability_header(call.args[0])? {
        Some(header) => header,
        None if call.args[1] == 0 => return Ok(Value::ZERO),
        None => return Err(Errno::EINVAL.into()),
    };
    if pid < 0 {
        return Err(Errno::EINVAL.into());
    }
    let found = kernel.process_or_self(pid)?.capabilities;
    if call.args[1] == 0 {
        return Ok(Value::ZERO);
    }
    let mut bytes = Vec::new();
    for shift in [0, 32].into_iter().take(words) {
        for set in [found.effective, found.permitted, found.inheritable] {
            bytes.extend_from_slice(&((set >> shift) as u32).to_le_bytes());
        }
    }
    kernel.write_bytes(call.args[1], &bytes)?;
    Ok(Value::ZERO)
}

fn capset(kernel: &mut Kernel<'_, '_>, call: &Call) -> Answer {
    let header = kernel.capability_header(call.args[0])?;
    let (pid, words) = header.ok_or(Errno::EINVAL)?;
    if pid != 0 && pid as u32 != kernel.task().tid {
        return Err(Errno::EPERM.into());
    }
    let bytes = kernel.read_bytes(call.args[1], 12 * words as u64)?;
    let mut sets = [0; 3];
    for (at, word) in bytes.as_chunks::<4>().0.iter().enumerate() {
        sets[at % 3] |= u64::from(u32::from_le_bytes(*word)) << (32 * (at / 3));
    }
    let [effective, permitted, inheritable] = sets.map(|set| set & ALL);
    let old = kernel.process().capabilities;
    let may_inherit = old.inheritable | if old.has(SETPCAP) { ALL } else { old.permitted };
    let is_allowed = inheritable & !may_inherit == 0
        && inheritable & !(old.inheritable | old.bounding) == 0
        && permitted & !old.permitted == 0
        && effective & !permitted == 0;
    if !is_allowed {
        return Err(Errno::EPERM.into());
    }
    kernel.process_mut().capabilities = Capabilities {
        effective,
        permitted,
        inheritable,
        ambient: old.ambient & permitted & inheritable,
        ..old
    };
    Ok(Value::ZERO)
}

impl Kernel<'_, '_> {
    /// Whether the process has a capability.
    pub fn is_capable(&self, capability: u32) -> bool {
        self.process().capabilities.has(capability)
    }

    /// Process and number of words. For an unknown version, `None`, and the header gets the latest
    /// version.
    fn capability_header(&mut self, address: u64) -> Result<Option<(i32, usize)>, Stop> {
        let header = self.read_u64(address)?;
        let words = match header as u32 {
            FIRST_VERSION => 1,
            SECOND_VERSION | THIRD_VERSION => 2,
            _ => {
                self.write_bytes(address, &THIRD_VERSION.to_le_bytes())?;
                return Ok(None);
            }
        };
        Ok(Some(((header >> 32) as i32, words)))
    }

    /// `PR_CAPBSET_READ` and `PR_CAPBSET_DROP`.
    pub(super) fn bounding_set(&mut self, capability: u64, drops: bool) -> Answer {
        if capability > 63 || ALL >> capability & 1 == 0 {
            return Err(Errno::EINVAL.into());
        }
        let old = self.process().capabilities;
        if !drops {
            return Ok(Value::concrete(old.bounding >> capability & 1));
        }
        if !self.is_capable(SETPCAP) {
            return Err(Errno::EPERM.into());
        }
        self.process_mut().capabilities.bounding = old.bounding & !(1 << capability);
        Ok(Value::ZERO)
    }

    /// `PR_CAP_AMBIENT`.
    pub(super) fn ambient_set(&mut self, request: u64, capability: u64) -> Answer {
        const IS_SET: u64 = 1;
        const RAISE: u64 = 2;
        const LOWER: u64 = 3;
        const CLEAR: u64 = 4;
        let old = self.process().capabilities;
        if request == CLEAR {
            if capability != 0 {
                return Err(Errno::EINVAL.into());
            }
            self.process_mut().capabilities.ambient = 0;
            return Ok(Value::ZERO);
        }
        if capability > 63 || ALL >> capability & 1 == 0 {
            return Err(Errno::EINVAL.into());
        }
        let bit = 1 << capability;
        match request {
            IS_SET => return Ok(Value::concrete(old.ambient >> capability & 1)),
            RAISE if self.process().has_secure_bit(secure::NO_AMBIENT) => {
                return Err(Errno::EPERM.into());
            }
            RAISE if old.permitted & old.inheritable & bit == 0 => return Err(Errno::EPERM.into()),
            RAISE => self.process_mut().capabilities.ambient = old.ambient | bit,
            LOWER => self.process_mut().capabilities.ambient = old.ambient & !bit,
            _ => return Err(Errno::EINVAL.into()),
        }
        Ok(Value::ZERO)
    }
}
