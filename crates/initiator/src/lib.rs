//! A host's side of NVMe/TCP: connect, queues, batching
