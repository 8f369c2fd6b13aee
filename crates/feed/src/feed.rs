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

/// Reads a whole feed.
pub fn parse(bytes: &[u8], hints: &Hints<'_>) -> Result<Feed, NotRecognised> {
    let mut items = Vec::new();
    let mut feed = parse_each(bytes, hints, |item| {
        items.push(item);
        ControlFlow::Continue(())
    })?;
    feed.items = items;
    Ok(feed)
}

/// Reads a feed and hands over each item as it ends, until `each` breaks. The
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
