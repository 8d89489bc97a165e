// An allocator of the program's own, layouts, zero-sized and over-aligned values.
// alone: its allocator is that of the whole program
// exec:
use std::alloc::{GlobalAlloc, Layout, System, alloc, alloc_zeroed, dealloc, realloc};
use std::sync::atomic::{AtomicIsize, Ordering};

struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[repr(align(256))]
#[derive(Clone)]
struct Wide([u8; 3]);

pub fn main() {
    let before = LIVE.load(Ordering::Relaxed);
    let numbers: Vec<u64> = (0..1000).collect();
    println!("{}", LIVE.load(Ordering::Relaxed) - before);
    drop(numbers);
    println!("{}", LIVE.load(Ordering::Relaxed) - before);
    let wide = vec![Wide([1, 2, 3]); 3];
    println!("{} {} {}", wide.as_ptr().addr() % 256, size_of::<Wide>(), wide[2].0[1]);
    let nothing = vec![(); 1 << 40];
    println!("{} {}", nothing.len(), LIVE.load(Ordering::Relaxed) - before - 768);
    // SAFETY: the layouts are the same all along.
    unsafe {
        let layout = Layout::array::<u16>(8).unwrap();
        let place = alloc_zeroed(layout);
        *place.add(15) = 9;
        let place = realloc(place, layout, 64);
        println!("{} {}", *place.add(15), *place.add(14));
        dealloc(place, Layout::from_size_align(64, 2).unwrap());
        let aligned = alloc(Layout::from_size_align(10, 4096).unwrap());
        println!("{}", aligned.addr() % 4096);
        dealloc(aligned, Layout::from_size_align(10, 4096).unwrap());
    }
    let mut text = String::with_capacity(5);
    text.push_str("grows beyond what was reserved");
    text.shrink_to_fit();
    println!("{} {:?}", text.capacity(), Layout::new::<(u8, u32)>());
    let mut big: Vec<u8> = Vec::new();
    println!("{:?}", big.try_reserve(isize::MAX as usize).is_err());
}
