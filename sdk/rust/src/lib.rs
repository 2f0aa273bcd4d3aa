//! Programs in Rust for computational storage drives.
//!
//! A program reads streams, front to back, and ends with a number; it may write bytes besides.
//!
//! ```ignore
//! #![no_std]
//! csd_sdk::program!(run);
//!
//! fn run() -> u64 {
//!     let mut zeros = 0;
//!     csd_sdk::each(0, |bytes| zeros += bytes.iter().filter(|byte| **byte == 0).count() as u64);
//!     zeros
//! }
//! ```
//!
//! `docs/guide/programs.md` describes the interface. There is no allocator: a program's memory is
//! its `static`s and its stack.
#![no_std]

use core::cell::UnsafeCell;

mod host {
    #[link(wasm_import_module = "csd")]
    unsafe extern "C" {
        pub safe fn streams() -> u32;
        pub fn next(stream: u32, at: *mut u8, room: u32) -> u32;
        pub fn emit(at: *const u8, length: u32);
        pub fn parameters(at: *mut u8, room: u32) -> u32;
        pub safe fn work(work: u64);
        pub fn fail(at: *const u8, length: u32);
    }
}

/// Bytes that [`each`] and [`elements`] fetch at once: few enough to stay in the nearest cache
/// until they are visited.
const PIECE_BYTES: usize = 8 << 10;

/// Static buffer: a program has one thread and enters it once.
#[repr(align(64))]
struct Piece(UnsafeCell<[u8; PIECE_BYTES]>, UnsafeCell<bool>);

// SAFETY: a program has one thread.
unsafe impl Sync for Piece {}

static PIECE: Piece = Piece(UnsafeCell::new([0; PIECE_BYTES]), UnsafeCell::new(false));

/// Returns the number of streams.
pub fn streams() -> u32 {
    host::streams()
}

/// Copies the next bytes of a stream into `room`; returns those copied, none at its end.
pub fn next(stream: u32, room: &mut [u8]) -> &mut [u8] {
    // SAFETY: the drive writes at most the room.
    let count = unsafe { host::next(stream, room.as_mut_ptr(), room.len() as u32) };
    &mut room[..count as usize]
}

/// Appends bytes to the output.
pub fn emit(bytes: &[u8]) {
    // SAFETY: the drive reads these bytes.
    unsafe { host::emit(bytes.as_ptr(), bytes.len() as u32) }
}

/// Copies the parameters into `room` and returns them; fails if they are longer.
pub fn parameters(room: &mut [u8]) -> &[u8] {
    // SAFETY: the drive writes at most the room.
    let count = unsafe { host::parameters(room.as_mut_ptr(), room.len() as u32) } as usize;
    match room.get(..count) {
        Some(bytes) => bytes,
        None => fail("the parameters are too long"),
    }
}

/// Partial answer, as passed to [`fold!`].
pub struct Part<'a> {
    /// Result of the program.
    pub result: u64,
    /// Bytes that it wrote.
    pub output: &'a [u8],
}

/// Returns the partial answer that is stream 0 or stream 1 of a fold, with its output in `room`;
/// fails if that is longer.
pub fn part(stream: u32, room: &mut [u8]) -> Part<'_> {
    let mut result = [0; 8];
    if fill(stream, &mut result) < result.len() {
        fail("there is no partial answer");
    }
    let length = fill(stream, room);
    if !next(stream, &mut [0]).is_empty() {
        fail("a partial answer is too long");
    }
    Part { result: u64::from_le_bytes(result), output: &room[..length] }
}

/// Fills `room` with the next bytes of a stream; returns how many there were.
pub fn fill(stream: u32, room: &mut [u8]) -> usize {
    let mut filled = 0;
    while filled < room.len() {
        match next(stream, &mut room[filled..]).len() {
            0 => break,
            count => filled += count,
        }
    }
    filled
}

/// Counts work done: elements, edges or bytes.
pub fn work(work: u64) {
    host::work(work);
}

/// Ends the execution with these words.
pub fn fail(words: &str) -> ! {
    // SAFETY: the drive reads these bytes.
    unsafe { host::fail(words.as_ptr(), words.len() as u32) };
    // The drive does not come back.
    core::arch::wasm32::unreachable()
}

/// Visits all bytes of a stream, piece by piece.
///
/// Fails when it is called within itself: there is one place for pieces.
pub fn each(stream: u32, visit: impl FnMut(&[u8])) {
    whole(stream, 1, visit);
}

/// Visits a stream in pieces of whole elements of `size` bytes; fails at a cut element.
pub fn whole(stream: u32, size: usize, mut visit: impl FnMut(&[u8])) {
    // SAFETY: `busy` is true while the piece is in use, and a program has one thread.
    let (piece, busy) = unsafe { (&mut *PIECE.0.get(), &mut *PIECE.1.get()) };
    if core::mem::replace(busy, true) {
        fail("each within each");
    }
    let mut kept = 0;
    loop {
        let count = next(stream, &mut piece[kept..]).len();
        if count == 0 {
            break;
        }
        let end = (kept + count) / size * size;
        visit(&piece[..end]);
        piece.copy_within(end..kept + count, 0);
        kept = kept + count - end;
    }
    if kept > 0 {
        fail("the stream ends within an element");
    }
    *busy = false;
}

/// Number that streams hold, little-endian.
pub trait Element: Copy {
    /// Size in bytes.
    const BYTES: usize;
    /// Reads a number from its bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($type:ty),*) => { $(
        impl Element for $type {
            const BYTES: usize = size_of::<$type>();
            fn read(bytes: &[u8]) -> Self {
                let mut own = [0; size_of::<$type>()];
                own.copy_from_slice(bytes);
                Self::from_le_bytes(own)
            }
        }
    )* };
}

elements!(u8, i32, u32, i64, u64, f32, f64);

/// Visits every element of a stream.
pub fn elements<T: Element>(stream: u32, mut visit: impl FnMut(T)) {
    whole(stream, T::BYTES, |bytes| bytes.chunks_exact(T::BYTES).map(T::read).for_each(&mut visit));
}

/// Makes a function the program's entry.
#[macro_export]
macro_rules! program {
    ($run:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn csd_run() -> u64 {
            $run()
        }

        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo) -> ! {
            $crate::fail("it panicked")
        }
    };
}

/// Makes a function the program's fold, which merges two partial answers, those of earlier and of
/// later chunks. It reads them with [`part`]; its result and the bytes that it emits are the
/// answer. Without a fold, the outputs of chunks are concatenated, and their results added.
#[macro_export]
macro_rules! fold {
    ($fold:path) => {
        #[unsafe(no_mangle)]
        extern "C" fn csd_fold() -> u64 {
            $fold()
        }
    };
}

/// Declares that the program's records are lines, so that none of them is cut at the end of a
/// chunk. Without it, records are elements of the object's type.
#[macro_export]
macro_rules! lines {
    () => {
        #[unsafe(no_mangle)]
        extern "C" fn csd_records() -> u64 {
            1
        }
    };
}
