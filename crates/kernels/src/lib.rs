//! Data-parallel kernels: slices in, slices out
