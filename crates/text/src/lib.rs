//! Bytes to text, as every parser of the workspace needs it: charset detection,
//! character references, `<meta>` tags, hex and base64.
//!
//! Pure: no I/O, no clock. Nothing here fails on a document: what can't be
//! decoded becomes U+FFFD or stays as it was written.
//!
//! ```
//! use tidings_text::charset::{Hints, decode};
//! use tidings_text::entities;
//!
//! let page = decode(b"<meta charset=latin1><p>Gr\xfc\xdfe &amp; mehr", &Hints::default());
//! assert_eq!(page.charset, "windows-1252");
//! assert!(entities::decode(&page.text).ends_with("Grüße & mehr"));
//! ```

pub mod base64;
pub mod charset;
mod content_type;
pub mod entities;
pub mod hex;
pub mod meta;
