//! CSDSTORE: arrays of drives, objects, layouts and runs
