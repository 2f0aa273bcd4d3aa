//! Free memory that passes from thread to thread.

use csd_buffer::Buffer;

#[test]
fn long_buffers_are_reused_by_other_threads() {
    for len in [1 << 20, 16 << 20] {
        let mut buffer = Buffer::zeroed(len);
        buffer.fill(1);
        let address = buffer.as_ptr() as usize;
        std::thread::spawn(move || drop(buffer)).join().unwrap();
        let again = Buffer::zeroed(len);
        assert_eq!(again.as_ptr() as usize, address);
        assert!(again.iter().all(|byte| *byte == 0));
    }
}
