use crate::errno::Errno;
use crate::kernel::{Kernel, Stop};
use crate::table::Row;
pub const ROWS: &[Row] = &[];
impl Kernel<'_, '_> {
    /// Time of the wall clock, in nanoseconds since 1970.
    pub fn wall_clock_ns(&self) -> u64 {
        self.host.start_time_ns.saturating_add(self.host.clock_ns)
    }

    /// A `struct timespec` in guest memory, in nanoseconds.
    pub fn read_time(&mut self, address: u64) -> Result<u64, Stop> {
        let seconds = self.read_u64(address)? as i64;
        let nanoseconds = self.read_u64(address.wrapping_add(8))?;
        let seconds = u64::try_from(seconds).map_err(|_| Errno::EINVAL)?;
        if nanoseconds >= 1_000_000_000 {
            return Err(Errno::EINVAL.into());
        }
        Ok(seconds
            .saturating_mul(1_000_000_000)
            .saturating_add(nanoseconds))
    }
}
