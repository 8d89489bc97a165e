// Panics that are caught, resumed and looked into; values are dropped in order on the way.
// build:
// build: -O
// exec:
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static DROPS: Cell<u32> = const { Cell::new(0) };
    static LAZY: String = { println!("lazy"); "thread local".to_string() };
}

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        DROPS.with(|drops| drops.set(drops.get() + 1));
        println!("drop {}", self.0);
    }
}

fn deep(level: u32) -> u32 {
    let _guard = Noisy("deep");
    let _boxed: Box<dyn Fn() -> u32> = Box::new(move || level);
    if level == 0 {
        let _list = vec![Noisy("first"), Noisy("second")];
        panic!("bottom at {}", level);
    }
    deep(level - 1) + 1
}

pub fn main() {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map(|l| l.line());
        println!("hook: {:?} at {place:?}", info.payload_as_str());
    }));
    let result = panic::catch_unwind(|| deep(2));
    println!("{:?}", result.unwrap_err().downcast_ref::<String>());
    let mut count = 0;
    for round in 0..4 {
        let answer = panic::catch_unwind(AssertUnwindSafe(|| {
            count += 1;
            if round % 2 == 0 { panic!("even") }
            round
        }));
        println!("{round} {:?}", answer.map_err(|e| e.downcast_ref::<&str>().copied()));
    }
    println!("{count} {}", DROPS.with(|drops| drops.get()));
    let outer = panic::catch_unwind(|| {
        let _noisy = Noisy("between");
        let inner = panic::catch_unwind(|| panic::panic_any(42u8));
        panic::resume_unwind(inner.unwrap_err());
    });
    println!("{:?}", outer.unwrap_err().downcast_ref::<u8>());
    LAZY.with(|text| println!("{text}"));
    let _ = panic::take_hook();
    std::process::exit(7);
}
