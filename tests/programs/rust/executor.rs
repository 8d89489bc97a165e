// Futures, polled by an executor of a few lines; peekable iterators, pattern matching, dynamic types.
// exec:
use std::any::Any;
use std::collections::VecDeque;
use std::future::Future;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

struct Yield(bool);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

async fn count(name: &'static str, upto: u32) -> u32 {
    let mut sum = 0;
    for n in 0..upto {
        println!("{name} {n}");
        Yield(false).await;
        sum += n;
    }
    sum
}

fn tokens(text: &str) -> Vec<String> {
    let mut chars = text.chars().peekable();
    let mut found = Vec::new();
    while let Some(c) = chars.next() {
        let mut token = c.to_string();
        while let Some(next) = chars.next_if(|n| c.is_alphanumeric() && n.is_alphanumeric()) {
            token.push(next);
        }
        if !c.is_whitespace() {
            found.push(token);
        }
    }
    found
}

fn describe(value: &dyn Any) -> String {
    match (value.downcast_ref::<i32>(), value.downcast_ref::<&str>()) {
        (Some(n @ 1..=9), _) => format!("digit {n}"),
        (Some(n), _) => format!("number {n}"),
        (_, Some(text)) => format!("text {text}"),
        _ => "unknown".into(),
    }
}

pub fn main() {
    let mut context = Context::from_waker(Waker::noop());
    let mut tasks: VecDeque<Pin<Box<dyn Future<Output = u32>>>> =
        VecDeque::from([Box::pin(count("a", 3)) as _, Box::pin(count("b", 1)) as _]);
    while let Some(mut task) = tasks.pop_front() {
        match task.as_mut().poll(&mut context) {
            Poll::Ready(sum) => println!("done {sum}"),
            Poll::Pending => tasks.push_back(task),
        }
    }
    let nested = pin!(async { count("c", 2).await + count("d", 1).await });
    println!("{:?}", nested.poll(&mut context).is_pending());
    println!("{:?}", tokens("let x1 = (y+42);"));
    println!("{} {} {} {}", describe(&5), describe(&50), describe(&"five"), describe(&5u8));
    let mut place: [MaybeUninit<u8>; 4] = [const { MaybeUninit::uninit() }; 4];
    for (at, byte) in place.iter_mut().enumerate() {
        byte.write(at as u8 * 3);
    }
    // SAFETY: all four were written.
    println!("{:?}", place.map(|byte| unsafe { byte.assume_init() }));
    let values = [1, 2, 3, 4, 5];
    if let [first, middle @ .., last] = &values[..] {
        println!("{first} {middle:?} {last}");
    }
    let label = 'outer: loop {
        for n in 1.. {
            if n * n > 50 { break 'outer n }
        }
    };
    println!("{label}");
}
