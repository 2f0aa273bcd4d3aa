//! Thread-per-core runtime with io_uring, epoll and simulated back ends
