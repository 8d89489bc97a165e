//! `ptrace`: fails system calls of real programs, whatever their language and however they are
//! linked.

use everett_linux::Errno;

use super::{
    CALL_ATTRIBUTES, CallFault, Injection, Injector, Means, Site, errno, errno_number, function,
    numbers, retval,
};
use crate::space::{Fault, Scenario};
use everett_linux::functions::named;

/// The injector.
pub(super) struct Ptrace;

impl Injector for Ptrace {
    fn plan(&self, scenario: &Scenario, _: &Means) -> Result<Injection, String> {
        let faults = scenario.faults.iter().map(call_fault);
        Ok(Injection::Calls(faults.collect::<Result<_, _>>()?))
    }

    fn attributes(&self) -> &'static [&'static str] {
        CALL_ATTRIBUTES
    }
}

fn call_fault(fault: &Fault) -> Result<CallFault, String> {
    let function = function(fault)?;
    let row = everett_linux::rows().find(|row| row.name == function && row.number < 1024);
    let Some(row) = row else {
        return Err(format!(
            "{function} is not a system call that can be failed; injector preload has libc functions"
        ));
    };
    let (first, last) = numbers(fault)?;
    let (errno, retval) = (errno(fault)?, retval(fault)?);
    let usual = usual_errno(&function, row.errnos);
    Ok(CallFault {
        call: Some(row.number),
        first,
        last,
        errno: match (errno, retval) {
            (Some(errno), _) => errno,
            (None, Some(retval)) if retval != -1 => 0,
            (None, _) => usual,
        },
        retval: retval.unwrap_or(-1),
        site: Site::of(fault),
        function,
    })
}

/// Returns the errno of a fault that names none: that of the libc function with the same name, if
/// the system call can give it, or the first after which programs do not simply try again.
fn usual_errno(function: &str, possible: &[Errno]) -> i32 {
    let of_libc = named(function).and_then(|function| function.errnos.first());
    let of_libc = of_libc.and_then(|name| errno_number(name));
    let is_passing = |errno: &Errno| matches!(*errno, Errno::EINTR | Errno::EAGAIN);
    let is_possible = |number: &i32| possible.is_empty() || possible.contains(&Errno(*number));
    let lasting = possible.iter().find(|errno| !is_passing(errno));
    let first = lasting.or(possible.first()).map(|errno| errno.0);
    of_libc
        .filter(is_possible)
        .or(first)
        .unwrap_or(Errno::EIO.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Injection, String> {
        Ptrace.plan(&Scenario::parse(text).unwrap(), &Means::default())
    }

    #[test]
    fn scenarios_become_failures_of_system_calls() {
        let Ok(Injection::Calls(faults)) =
            plan("function read errno EINTR retVal -1 callNumber <5,10>")
        else {
            panic!();
        };
        assert_eq!(
            (faults[0].call, faults[0].first, faults[0].last),
            (Some(0), 5, 10)
        );
        assert_eq!(faults[0].result(), -4);
        assert!(faults[0].hits(5) && faults[0].hits(10) && !faults[0].hits(11));
        let Ok(Injection::Calls(faults)) = plan("function close callNumber 0") else {
            panic!();
        };
        assert!(!faults[0].hits(0) && faults[0].happens_too());
        // Without an errno, not one after which programs try again.
        for (call, number) in [("read", 5), ("write", 28), ("close", 5), ("accept4", 103)] {
            let Ok(Injection::Calls(faults)) = plan(&format!("function {call} callNumber 1"))
            else {
                panic!("{call}");
            };
            assert_eq!(faults[0].errno, number, "{call}");
        }
        assert!(plan("function strdup").unwrap_err().contains("strdup"));
        assert!(
            plan("function read errno EWHAT")
                .unwrap_err()
                .contains("EWHAT")
        );
        assert!(
            plan("function read callNumber x")
                .unwrap_err()
                .contains("x is not the number")
        );
        assert!(plan("errno EIO").unwrap_err().contains("function"));
    }
}
