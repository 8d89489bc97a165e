//! Opening of FIFOs: each end blocks until the other is opened.

use triomphe::Arc;

use crate::errno::Errno;
use crate::files::{OpenFlags, Target};
use crate::ids::{InodeId, ObjectId};
use crate::kernel::{Kernel, Stop};
use crate::objects::{Object, Pipe};
use crate::process::RunState;
use crate::wait::WaitCondition;

impl Kernel<'_, '_> {
    /// Opens a FIFO. The waiting opens of the other end complete at once, so that neither end finds
    /// the other closed before its thread had a chance to run.
    pub fn open_fifo(&mut self, fifo: InodeId, flags: OpenFlags) -> Result<Target, Stop> {
        let pipe = self.host.files.pipe_of(fifo);
        if let (Some(pipe), true) = (pipe, self.task().woken) {
            // The thread that opened the other end has completed this open.
            return Ok(Target::Object(pipe));
        }
        let (reads, writes) = (flags.readable(), flags.writable());
        let (readers, writers) = pipe.map_or((0, 0), |pipe| self.ends(pipe));
        let waiting = self.waiting_at(fifo, reads, writes);
        let alone = match (reads, writes) {
            (true, false) => writers == 0,
            (false, true) => readers == 0,
            _ => false,
        };
        if alone && waiting.is_empty() {
            if !flags.has(OpenFlags::NONBLOCK) {
                return Err(
                    self.wait_restartable(WaitCondition::Fifo(fifo, reads), "open of a FIFO")
                );
            }
            if writes {
                return Err(Errno::ENXIO.into());
            }
        }
        let pipe = pipe.unwrap_or_else(|| {
            let pipe = Object::Pipe(Pipe::without_ends());
            let pipe = ObjectId(self.host.objects.insert(pipe));
            self.host.files.set_pipe(fifo, pipe);
            pipe
        });
        self.add_ends(pipe, u32::from(reads), u32::from(writes));
        for task in waiting {
            let task = Arc::make_mut(&mut self.host.tasks[task]);
            task.woken = true;
            let reads = task.run_state.condition() == Some(&WaitCondition::Fifo(fifo, true));
            self.add_ends(pipe, u32::from(reads), u32::from(!reads));
        }
        Ok(Target::Object(pipe))
    }

    /// Threads that wait for the other end and have not been woken yet.
    fn waiting_at(&self, fifo: InodeId, reads: bool, writes: bool) -> Vec<usize> {
        let tasks = self.host.tasks.iter().enumerate();
        let waits = tasks.filter(|(_, task)| match &task.run_state {
            RunState::Waiting(wait) => {
                let wanted = (reads && wait.condition == WaitCondition::Fifo(fifo, false))
                    || (writes && wait.condition == WaitCondition::Fifo(fifo, true));
                wanted && !task.woken
            }
            _ => false,
        });
        waits.map(|(at, _)| at).collect()
    }

    fn ends(&self, pipe: ObjectId) -> (u32, u32) {
        match self.host.objects.get(pipe.0) {
            Some(Object::Pipe(pipe)) => (pipe.readers, pipe.writers),
            _ => (0, 0),
        }
    }

    fn add_ends(&mut self, pipe: ObjectId, readers: u32, writers: u32) {
        if let Some(Object::Pipe(pipe)) = self.host.objects.get_mut(pipe.0) {
            pipe.readers += readers;
            pipe.writers += writers;
            pipe.writers_ever += u64::from(writers);
        }
    }

    /// Reopens a pipe through its link in `/proc`.
    pub fn open_object_again(&mut self, id: ObjectId, flags: OpenFlags) -> Result<Target, Stop> {
        if !matches!(self.host.objects.get(id.0), Some(Object::Pipe(_))) {
            return Err(Errno::ENXIO.into());
        }
        self.add_ends(id, u32::from(flags.readable()), u32::from(flags.writable()));
        Ok(Target::Object(id))
    }
}
