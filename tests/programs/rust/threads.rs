// exec:
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock};
use std::thread;
use std::time::{Duration, Instant};

struct Noisy(&'static str);

impl Drop for Noisy {
    fn drop(&mut self) {
        println!("dropped {}", self.0);
    }
}

thread_local! {
    static OWN: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static NOISY: Noisy = const { Noisy("thread local") };
}

fn channels() {
    let (sender, receiver) = mpsc::channel();
    let workers: Vec<_> = (0..4)
        .map(|number| {
            let sender = sender.clone();
            thread::spawn(move || {
                for item in 0..25 {
                    sender.send(number * 100 + item).unwrap();
                }
            })
        })
        .collect();
    drop(sender);
    let mut all: Vec<u32> = receiver.iter().collect();
    all.sort_unstable();
    println!("{} {} {:?}", all.len(), all.iter().sum::<u32>(), &all[..3]);
    for worker in workers {
        worker.join().unwrap();
    }
    let (sender, receiver) = mpsc::sync_channel(1);
    let giver = thread::spawn(move || {
        for item in 0..10 {
            sender.send(item).unwrap();
        }
    });
    println!("{:?}", receiver.iter().collect::<Vec<i32>>());
    giver.join().unwrap();
    let (sender, receiver) = mpsc::channel::<()>();
    println!("{:?}", receiver.recv_timeout(Duration::from_millis(5)) == Err(RecvTimeoutError::Timeout));
    drop(sender);
    println!("{:?}", receiver.recv());
}

fn locks() {
    let counter = Arc::new(Mutex::new(0));
    let together = Arc::new(Barrier::new(3));
    let leaders = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..3)
        .map(|_| {
            let (counter, together, leaders) = (counter.clone(), together.clone(), leaders.clone());
            thread::spawn(move || {
                for _ in 0..100 {
                    *counter.lock().unwrap() += 1;
                }
                if together.wait().is_leader() {
                    leaders.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    println!("{} {}", counter.lock().unwrap(), leaders.load(Ordering::SeqCst));
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = pair.clone();
    let setter = thread::spawn(move || {
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let ready = pair.1.wait_while(pair.0.lock().unwrap(), |ready| !*ready);
    println!("{}", *ready.unwrap());
    setter.join().unwrap();
    let shared = RwLock::new(5);
    {
        let (first, second) = (shared.read().unwrap(), shared.read().unwrap());
        println!("{} {}", *first + *second, shared.try_write().is_err());
    }
    *shared.write().unwrap() += 1;
    println!("{shared:?}");
    static ONCE: Once = Once::new();
    static CELL: OnceLock<u32> = OnceLock::new();
    thread::scope(|scope| {
        for number in 0..3 {
            scope.spawn(move || {
                ONCE.call_once(|| println!("once"));
                CELL.get_or_init(|| number / 10);
            });
        }
    });
    println!("{:?}", CELL.get());
}

pub fn main() {
    channels();
    locks();
    let handle = thread::Builder::new().name("named".into()).spawn(|| {
        OWN.with_borrow_mut(|own| own.push(1));
        NOISY.with(|noisy| println!("uses {}", noisy.0));
        println!("{:?}", thread::current().name());
        OWN.with_borrow(|own| own.len())
    });
    println!("{}", handle.unwrap().join().unwrap());
    println!("{}", OWN.with_borrow(|own| own.len()));
    let panics = thread::spawn(|| {
        let _noisy = Noisy("unwound");
        if OWN.with_borrow(|own| own.is_empty()) {
            panic!("in a thread");
        }
    });
    let error = panics.join().unwrap_err();
    println!("{:?}", error.downcast_ref::<&str>());
    let poisoned = Arc::new(Mutex::new(1));
    let other = poisoned.clone();
    let _ = thread::spawn(move || {
        let _guard = other.lock().unwrap();
        panic!("holding");
    })
    .join();
    println!("{}", poisoned.is_poisoned());
    let parked = thread::spawn(|| {
        thread::park();
        "unparked"
    });
    parked.thread().unpark();
    println!("{}", parked.join().unwrap());
    let start = Instant::now();
    thread::sleep(Duration::from_millis(20));
    println!("{}", start.elapsed() >= Duration::from_millis(20));
    println!("{}", thread::available_parallelism().is_ok());
}
