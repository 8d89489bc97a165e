//! Signal handlers on native threads: the real kernel builds their frames, the model determines the
//! contents.

use everett_linux::Injected;
use nix::sys::ptrace;

use super::{Call, PTRACE_SYSEMU_SINGLESTEP, Stopped, Tracee};

/// Offset of the signal mask in a signal frame: behind the return address, two words, three words
/// about the stack, and the registers.
const FRAME_MASK: u64 = 8 + 16 + 24 + 256;

impl Tracee {
    /// Pushes a signal frame; the thread stops before the first instruction of the handler. Returns
    /// `false` if it does not get there.
    pub fn enter_handler(&mut self, injected: &Injected) -> std::io::Result<bool> {
        // The model decides which signals are blocked.
        self.unblock_all()?;
        // SAFETY: three numbers; the thread is ours.
        unsafe {
            libc::syscall(
                libc::SYS_tgkill,
                self.process.as_raw(),
                self.thread.as_raw(),
                injected.signal,
            );
        }
        let mut stopped = self.run(None)?;
        while matches!(stopped, Stopped::Signal(other) if other != injected.signal) {
            // Another signal; a stop by the watchdog may be late.
            stopped = self.run(None)?;
        }
        if stopped != Stopped::Signal(injected.signal) {
            return Ok(false);
        }
        self.set_information(injected.signal, injected.code, injected.words)?;
        // A single step into a handler executes none of its instructions.
        self.resume(PTRACE_SYSEMU_SINGLESTEP, injected.signal)?;
        if self.wait()? != Stopped::Signal(libc::SIGTRAP) {
            return Ok(false);
        }
        // The handler may read and change the mask that will be restored.
        let frame = self.registers()?.rsp;
        // A fault that the real kernel considers blocked would reset the handler.
        self.unblock_all()?;
        Ok(self.poke(frame.wrapping_add(FRAME_MASK), &injected.mask.to_le_bytes()))
    }

    /// Returns from a handler: the real kernel restores the frame. The model keeps the signal mask.
    pub(crate) fn leave_handler(&mut self, call: Call) -> std::io::Result<()> {
        // The call has popped the return address.
        let frame = self.registers()?.rsp.wrapping_sub(8);
        let mut mask = [0; 8];
        let known = self.peek(frame.wrapping_add(FRAME_MASK), &mut mask);
        self.mask_of_frame = known.then_some(u64::from_le_bytes(mask));
        self.inject_call(call.number, call.args)?;
        self.unblock_all()
    }

    fn unblock_all(&self) -> std::io::Result<()> {
        const PTRACE_SETSIGMASK: libc::c_uint = 0x420b;
        let none = 0u64;
        // SAFETY: the kernel reads the eight bytes that it is given.
        let failed = unsafe {
            libc::ptrace(
                PTRACE_SETSIGMASK,
                self.thread.as_raw(),
                size_of_val(&none),
                &raw const none,
            ) != 0
        };
        match failed {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    /// Returns the origin of the signal about to be delivered: `si_code`, and `siginfo_t` from byte
    /// 16 on.
    pub fn information_of_signal(&self) -> std::io::Result<(i32, [u64; 3])> {
        let information = ptrace::getsiginfo(self.thread)?;
        // SAFETY: `siginfo_t` is plain data of 128 bytes.
        let words = unsafe {
            let place = (&raw const information).cast::<[u64; 3]>();
            place.byte_add(16).read()
        };
        Ok((information.si_code, words))
    }

    /// Sets the origin of the signal about to be delivered.
    fn set_information(&self, signal: i32, code: i32, words: [u64; 3]) -> std::io::Result<()> {
        let mut information = ptrace::getsiginfo(self.thread)?;
        information.si_signo = signal;
        information.si_code = code;
        // SAFETY: `siginfo_t` is plain data of 128 bytes; the words follow
        // three numbers and their padding.
        unsafe {
            let place = (&raw mut information).cast::<[u64; 3]>();
            place.byte_add(16).write(words);
        }
        Ok(ptrace::setsiginfo(self.thread, &information)?)
    }
}
