//! The global allocator: mimalloc. A state consists of many small allocations; a fork makes about
//! fifty.
//!
//! The crate `mimalloc` requests an alignment at each allocation, which costs as much again as the
//! allocation itself. Nearly all alignments are natural ones, which mimalloc guarantees anyway.

use libmimalloc_sys::{
    mi_free, mi_malloc, mi_malloc_aligned, mi_realloc, mi_realloc_aligned, mi_zalloc,
    mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout};

pub struct Allocator;

/// mimalloc aligns each block to a word, and blocks of at least this size to this boundary (its
/// `MI_MAX_ALIGN_SIZE`).
const NATURAL: usize = 16;
const WORD: usize = 8;

/// Returns whether blocks of a size have an alignment anyway.
#[inline]
const fn is_natural(size: usize, align: usize) -> bool {
    align <= WORD || (align <= NATURAL && size >= NATURAL)
}

// SAFETY: mimalloc is an allocator; blocks have the alignment of their layout, by `is_natural` or
// on request.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are allowed.
        unsafe {
            match is_natural(size, align) {
                true => mi_malloc(size).cast(),
                false => mi_malloc_aligned(size, align).cast(),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let (size, align) = (layout.size(), layout.align());
        // SAFETY: any size and any power of two are allowed.
        unsafe {
            match is_natural(size, align) {
                true => mi_zalloc(size).cast(),
                false => mi_zalloc_aligned(size, align).cast(),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the block comes from this allocator.
        unsafe { mi_free(block.cast()) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block comes from this allocator; its contents are kept as far as they fit.
        unsafe {
            match is_natural(size, layout.align()) {
                true => mi_realloc(block.cast(), size).cast(),
                false => mi_realloc_aligned(block.cast(), size, layout.align()).cast(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks of all small sizes and some large ones, many of each, are aligned, also after they
    /// grow and shrink.
    #[test]
    fn blocks_are_aligned() {
        let sizes = (1..=300).chain([1000, 4096, 5000, 65_536, 1_000_000]);
        for size in sizes {
            for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
                let layout = Layout::from_size_align(size, align).unwrap();
                let mut blocks = Vec::new();
                for _ in 0..9 {
                    // SAFETY: the layout is not empty.
                    let block = unsafe { Allocator.alloc(layout) };
                    assert!((block as usize).is_multiple_of(align), "{layout:?}");
                    for other in [size + 40, size / 2 + 1] {
                        // SAFETY: the block was just allocated with this layout, and is freed
                        // again.
                        unsafe {
                            let zeroed = Allocator.alloc_zeroed(layout);
                            assert!((zeroed as usize).is_multiple_of(align), "{layout:?}");
                            assert!((0..size).all(|at| zeroed.add(at).read() == 0));
                            let moved = Allocator.realloc(zeroed, layout, other);
                            assert!(
                                (moved as usize).is_multiple_of(align),
                                "{layout:?} to {other}"
                            );
                            let after = Layout::from_size_align(other, align).unwrap();
                            Allocator.dealloc(moved, after);
                        }
                    }
                    blocks.push(block);
                }
                for block in blocks {
                    // SAFETY: the block was allocated above, and is freed once.
                    unsafe { Allocator.dealloc(block, layout) };
                }
            }
        }
    }
}
