//! Takes the keys that [`Watched`] has noted in a shard, and finds those that it had before.

use std::ops::Bound;
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::yield_now;

use crate::shard::Shard;
use crate::watch::{KeyKind, Watched};

/// Keys of the index that a shard looks at in a step.
const LOOKS_MAX: usize = 256;

/// Takes up to `most` keys of a kind that changed.
pub(crate) async fn changed(
    shard: Rc<Shard>,
    kind: KeyKind,
    most: usize,
) -> Result<Vec<Key>, Status> {
    loop {
        let from = {
            let mut watched = shard.watched.borrow_mut();
            watched.get_or_insert_with(|| Watched::new(kind)).from
        };
        let Some(from) = from else { break };
        let page = shard.list_certain(kind.nsid, from, LOOKS_MAX, LOOKS_MAX).await?;
        if let Some(watched) = &mut *shard.watched.borrow_mut() {
            watched.from = page.last.map(Bound::Excluded);
            let keys = page.keys.into_iter().map(|(_, key)| key);
            watched.changed.extend(keys.filter(|key| kind.has(key)));
        }
        yield_now().await;
    }
    let mut watched = shard.watched.borrow_mut();
    let changed = &mut watched.as_mut().expect("made above").changed;
    Ok(std::iter::from_fn(|| changed.pop_first()).take(most).collect())
}
