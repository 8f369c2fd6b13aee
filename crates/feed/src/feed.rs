//! From bytes to a feed, whatever its format: inflate, decode, recognise, read.
//! Items can be taken one by one, so that a huge feed needs little memory.

use std::ops::ControlFlow;

use crate::decode::decode;
use crate::defect::{DefectKind, Defects};
use crate::error::{Found, NotRecognised, Wanted};
use crate::hints::Hints;
use crate::model::{Feed, Item};
use crate::reader::Reader;
use crate::root::{self, Root};
use crate::{gzip, json};

/// Items that [`parse`] keeps; what stands behind them is counted only.
pub const MAX_ITEMS: usize = 10_000;

/// Reads a whole feed.
pub fn parse(bytes: &[u8], hints: &Hints<'_>) -> Result<Feed, NotRecognised> {
    let mut items = Vec::new();
    let mut left_out = 0_usize;
    let mut feed = parse_each(bytes, hints, |item| {
        match items.len() < MAX_ITEMS {
            true => items.push(item),
            false => left_out += 1,
        }
        ControlFlow::Continue(())
    })?;
    feed.items = items;
    if left_out > 0 {
        let detail = format!("only the first {MAX_ITEMS} items are kept; {left_out} are left out");
        feed.defects.note_whole(DefectKind::TooMany, &detail);
    }
    Ok(feed)
}

/// Reads a feed and hands over each item as it ends, until `each` breaks. Items
/// without link, id and title are nothing to anybody: they are dropped. The
/// feed that is returned has no items; what stands behind the last one that was
/// read is not known to it.
pub fn parse_each(
    bytes: &[u8],
    hints: &Hints<'_>,
    mut each: impl FnMut(Item) -> ControlFlow<()>,
) -> Result<Feed, NotRecognised> {
    let not_a_feed = |found| NotRecognised {
        wanted: Wanted::Feed,
        found,
    };
    let mut defects = Defects::default();
    let inflated = gzip::inflate(bytes, hints.max_bytes);
    if let Some(damage) = &inflated.damage {
        if inflated.bytes.is_empty() {
            return Err(not_a_feed(Found::BadGzip));
        }
        defects.note_whole(DefectKind::DamagedGzip, damage);
    }
    let text = decode(&inflated.bytes, hints.content_type, &mut defects);
    match root::find(&text, defects) {
        Root::Feed {
            tokens,
            tag,
            format,
        } => Ok(Reader::new(*tokens, format, hints, &mut each).read(tag)),
        Root::Json { text, defects } => {
            json::read(text, hints, defects, &mut each).map_err(not_a_feed)
        }
        Root::Sitemap { .. } => Err(not_a_feed(Found::Sitemap)),
        Root::Other(found, _) => Err(not_a_feed(found)),
    }
}
