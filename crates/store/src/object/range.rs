//! Read: bytes of an object from anywhere in it.
//!
//! Reads the chunks that hold these bytes and no others, each one whole: only then does the drive
//! check its checksum. A part of an object has no digest to compare with. Lost chunks of a
//! protected object are computed, and those of an object that was moved are read where it is now.
//! Connections that are lost are made again.

use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use csd_reactor::{Buffer, Class, JoinHandle, spawn};

use super::after_move;
use super::chunk::read_chunk;
use super::pieces::Pieces;
use super::{Error, WINDOW};
use crate::array::Array;
use crate::catalogue::Entry;
use crate::steady::steadily;

/// Returns these bytes of the object that `entry` describes; fewer if it ends before.
///
/// # Errors
/// [`NameError::Removed`](crate::error::NameError::Removed) when it was removed in the
/// meantime, [`NameError::Moved`](crate::error::NameError::Moved) when it was moved and cannot be
/// read where it is now either; [`DriveError::Corrupt`](crate::error::DriveError::Corrupt); an
/// error of the drives.
pub async fn read(array: &Array, entry: &Entry, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
    let end = bytes.end.min(entry.bytes);
    if bytes.start >= end {
        return Ok(Vec::new());
    }
    match steadily(array, async || copy(array, entry, bytes.start..end).await).await {
        Ok(read) => Ok(read),
        Err(error) => match after_move::after(array, entry, &error).await {
            Some(moved) => copy(array, &moved, bytes.start..end).await,
            None => Err(after_move::removed_or_moved(array, entry, error).await),
        },
    }
}

/// Reads bytes that exist, of which there is at least one.
async fn copy(array: &Array, entry: &Entry, bytes: Range<u64>) -> Result<Vec<u8>, Error> {
    let layout = entry.layout();
    let (first, mut begin) = layout.chunk_at(bytes.start);
    let (last, _) = layout.chunk_at(bytes.end - 1);
    let shared = Rc::new(entry.clone());
    let mut pieces: Option<Rc<Pieces>> = None;
    let mut pending: VecDeque<(u32, JoinHandle<Result<Buffer, Error>>)> = VecDeque::new();
    let mut chunks = first..=last;
    let mut read = Vec::with_capacity(usize::try_from(bytes.end - bytes.start).unwrap_or(0));
    loop {
        while pending.len() < WINDOW * entry.members.len() {
            let Some(chunk) = chunks.next() else { break };
            let drive = array.drive(entry.members[layout.member(chunk)]).map(Rc::clone);
            let entry = Rc::clone(&shared);
            let reading = async move { read_chunk(&*drive?, &entry, chunk).await };
            pending.push_back((chunk, spawn(Class::Foreground, reading)));
        }
        let Some((number, chunk)) = pending.pop_front() else { return Ok(read) };
        let chunk = match chunk.await {
            Err(error) if shared.protected().is_some() && error.is_of_piece() => {
                if pieces.is_none() {
                    pieces = Pieces::new(array, &shared);
                }
                pieces.as_ref().ok_or(error)?.chunk(number).await?
            }
            chunk => chunk?,
        };
        let inside = |byte: u64| {
            let within = byte.saturating_sub(begin).min(chunk.len() as u64);
            usize::try_from(within).expect("at most a chunk")
        };
        read.extend_from_slice(&chunk[inside(bytes.start)..inside(bytes.end)]);
        begin += chunk.len() as u64;
    }
}
