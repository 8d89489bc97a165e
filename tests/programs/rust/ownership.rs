// Trait objects, reference counting, interior mutability and closures.
// exec:
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::ops::{Add, Deref, Index};
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock};

trait Shape: Debug {
    fn area(&self) -> f64;
    fn name(&self) -> String {
        format!("{self:?}")
    }
}

#[derive(Debug)]
struct Square(f64);
#[derive(Debug)]
struct Circle {
    radius: f64,
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}
impl Shape for Circle {
    fn area(&self) -> f64 {
        3.0 * self.radius * self.radius
    }
    fn name(&self) -> String {
        "circle".into()
    }
}
impl Drop for Square {
    fn drop(&mut self) {
        println!("square {} gone", self.0);
    }
}

struct Tree {
    value: i32,
    parent: RefCell<Weak<Tree>>,
    children: RefCell<Vec<Rc<Tree>>>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Wrapped<const N: usize>([u16; N]);

impl<const N: usize> Add for Wrapped<N> {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Wrapped(std::array::from_fn(|at| self.0[at].wrapping_add(other.0[at])))
    }
}
impl<const N: usize> Index<usize> for Wrapped<N> {
    type Output = u16;
    fn index(&self, at: usize) -> &u16 {
        &self.0[at]
    }
}
impl<const N: usize> Deref for Wrapped<N> {
    type Target = [u16];
    fn deref(&self) -> &[u16] {
        &self.0
    }
}

static COUNTER: AtomicU64 = AtomicU64::new(5);
static TABLE: OnceLock<HashMap<&str, u32>> = OnceLock::new();

fn make_adder(n: i32) -> impl Fn(i32) -> i32 {
    move |m| n + m
}

pub fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle { radius: 1.5 })];
    for shape in &shapes {
        println!("{} {}", shape.name(), shape.area());
    }
    drop(shapes);
    let leaf = Rc::new(Tree { value: 3, parent: RefCell::new(Weak::new()), children: RefCell::new(vec![]) });
    {
        let branch = Rc::new(Tree { value: 5, parent: RefCell::new(Weak::new()), children: RefCell::new(vec![leaf.clone()]) });
        *leaf.parent.borrow_mut() = Rc::downgrade(&branch);
        println!("{:?} {}", leaf.parent.borrow().upgrade().map(|p| p.value), Rc::strong_count(&leaf));
        println!("{}", branch.children.borrow().iter().map(|c| c.value).sum::<i32>());
    }
    println!("{:?} {}", leaf.parent.borrow().upgrade().map(|p| p.value), Rc::strong_count(&leaf));
    let cell = RefCell::new(vec![1]);
    println!("{:?}", cell.try_borrow_mut().map(|mut v| v.push(2)).is_ok());
    println!("{cell:?} {:?}", Cell::new(4).replace(5));
    let once = OnceCell::new();
    println!("{} {}", once.get_or_init(|| 8), once.get_or_init(|| 9));
    let sum = Wrapped([1, 2, 65535]) + Wrapped([1, 1, 1]);
    println!("{sum:?} {} {}", sum[1], sum.iter().max().unwrap());
    let adders: Vec<Box<dyn Fn(i32) -> i32>> = vec![Box::new(make_adder(1)), Box::new(|n| n * n)];
    println!("{:?}", adders.iter().map(|f| f(7)).collect::<Vec<_>>());
    let shared = Arc::new(Mutex::new(0));
    for n in 0..4 {
        let shared = Arc::clone(&shared);
        (move || *shared.lock().unwrap() += n)();
    }
    println!("{} {}", shared.lock().unwrap(), RwLock::new(3).read().unwrap());
    println!("{} {}", COUNTER.fetch_add(3, Ordering::SeqCst), COUNTER.load(Ordering::Relaxed));
    println!("{:?}", TABLE.get_or_init(|| HashMap::from([("a", 1)])).get("a"));
}
