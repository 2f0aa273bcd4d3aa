//! End to end: the built `csd` binary over arrays of one, two and four real drives.
//!
//! Every test has its own drives in its own folder. Every command has a time limit; a test whose
//! command exceeds it fails. Answers are compared with numbers that the test computes itself.
//!
//! A test imports from [`support`] alone, so that it can be read by itself.
//!
//! - [`run_places`]: drives, host and both agree, on both placements, for every number of drives
//! - [`kernels`]: every kernel, every way, on both placements, for every number of drives
//! - [`refused_inputs`]: objects that kernels cannot run over; [`bad_sources`]: executions that
//!   drives refuse
//! - [`objects`]: put, get, list, remove; inputs, right and wrong
//! - [`files`]: lists, contents and sizes; [`copies`]: other names;
//!   [`folders`]: folders of files;
//!   [`sums`]: digests; [`mod@sync`]: both
//!   sides made the same; [`tars`]: backups and other tars
//! - [`arrays`]: array files that were copied, made up by others, or used by several at once
//! - [`attach`]: a drive's blocks as a file, and the socket of its inside
//! - [`backup`]: copies of arrays, and versions
//! - [`capacity`]: what objects can still take
//! - [`os`]: operating systems of drives; [`os_limits`]: what they may not do; [`os_answers`]:
//!   their OpenSSH meanwhile; [`os_faults`]: what remains of killed ones; [`os_network`]: their
//!   OpenSSH; [`os_missing`]: machines that lack something; [`os_shared`]: resources that all
//!   users of the machine share; [`os_cluster`]: programs over several drives
//! - [`options`]: options of an array's drives
//! - [`drive_status`]: what drives say of themselves; [`services`]: their services, paused and
//!   limited
//! - [`growth`]: more drives for an array that has objects
//! - [`transfer`]: objects to files and back
//! - [`tunnel`]: network namespaces that drives join; [`tunnel_faults`]: connections that go on
//! - [`kv`]: values and long objects of a key-value namespace; [`kv_range`]: keys between bounds;
//!   [`volatile_cache`]: its volatile cache; [`third_party_kv`]: another maker's drive
//! - [`put_inputs`]: several files, sizes, empty cells, weights
//! - [`lifecycle`]: drives and arrays: up, status, down, what they refuse
//! - [`pace`]: a drive as late as a profile's device
//! - [`machines`]: an array over several machines
//! - [`operations`]: draining, counting, logging
//! - [`programs`]: programs in a drive; [`over_objects`]: over objects, on every drive and the host
//! - [`program_cleanup`]: programs of runs that were killed or interrupted
//! - [`program_new`]: folders with new programs
//! - [`memory`]: what a drive holds of its hosts' data, by the kernel's count
//! - [`media`]: checking, damage, direct I/O, block devices
//! - [`scrub`]: damage at rest that drives find; [`scrub_pauses`]: at a rate, and interrupted;
//!   [`scrub_deep`]: code words
//! - [`secrets`]: hosts and drives that prove who they are
//! - [`mod@characterize`]: profiles of what is measured; [`characterize_drives`]: of arrays, and of
//!   a drive of another maker
//! - [`log`]: a drive's log that no process reads, and names that would move a terminal's cursor
//! - [`meter`]: what a command took
//! - [`messages`]: what commands say, and their exit codes
//! - [`json`]: what they print for programs, against its description
//! - [`failures`]: drives that are down or die, cut-off puts, full and corrupt media
//! - [`bench_ec`]: erasure coding on hosts and in drives
//! - [`mod@bench`]: measurements: their structure, interruption, drives of others
//! - [`catalogue_faults`]: drives that have forgotten names, damaged entries, chunks in
//!   wrong places
//! - [`peers`]: drives that work with each other
//! - [`protected`]: objects with parity, and the loss of their drives
//! - [`protected_faults`]: full media, damaged entries and the media of others
//! - [`lost_drives`]: runs over protected objects while drives are lost; [`wrong_chunks`]: over
//!   chunks that are not those that were put
//! - [`strong_codes`]: codes that survive the loss of most drives
//! - [`rebalance`]: objects that are moved to drives that were added; [`removal`]: drives that are
//!   taken out
//! - [`repair`]: lost and damaged pieces that are made again; [`replace`]: new drives for old ones
//! - [`page_lists`]: checksums of pages; [`page_lists_by_drives`]: those of pieces that drives have
//!   made
//! - [`soak`]: all of that under load
//! - [`encode_in_drives`]: parity that drives compute
//! - [`ended_commands`]: commands that are killed leave nothing running; [`silences`]: drives that
//!   do not answer while they are measured
//! - [`concurrent_writers`]: several writers of one name, and readers of what is removed
//! - [`frequencies`]: lines, words and fields that are counted in the drives, compared with sort,
//!   uniq and awk
//! - [`search`]: lines that are found and counted in the drives, compared with grep and wc
//! - [`reconnect`]: runs whose connection to a drive is cut, by a proxy

#![allow(clippy::unwrap_used)] // in a test a panic is the report

mod arrays;
mod attach;
mod backup;
mod bad_sources;
mod bench;
mod bench_ec;
mod capacity;
mod catalogue_faults;
mod characterize;
mod characterize_drives;
mod completion;
mod concurrent_writers;
mod copies;
mod damaged_names;
mod drive_status;
mod each;
mod encode_in_drives;
mod ended_commands;
mod failures;
mod files;
mod folders;
mod frequencies;
mod growth;
mod json;
mod kernels;
mod kv;
mod kv_range;
mod lifecycle;
mod log;
mod lost_drives;
mod lost_output;
mod machines;
mod media;
mod memory;
mod messages;
mod meter;
mod mount;
mod names;
mod objects;
mod operations;
mod options;
mod os;
mod os_answers;
mod os_cluster;
mod os_faults;
mod os_limits;
mod os_missing;
mod os_network;
mod os_shared;
mod over_objects;
mod pace;
mod page_lists;
mod page_lists_by_drives;
mod peers;
mod program_cleanup;
mod program_failures;
mod program_new;
mod programs;
mod protected;
mod protected_faults;
mod put_inputs;
mod rebalance;
mod reconnect;
mod refused_inputs;
mod removal;
mod repair;
mod replace;
mod run_places;
mod scrub;
mod scrub_deep;
mod scrub_pauses;
mod search;
mod secrets;
mod services;
mod shared_chunks;
mod silences;
mod soak;
mod strong_codes;
mod sums;
mod support;
mod sync;
mod tars;
mod third_party_kv;
mod transfer;
mod tunnel;
mod tunnel_faults;
mod volatile_cache;
mod wrong_chunks;
