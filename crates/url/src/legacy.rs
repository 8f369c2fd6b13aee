//! Ids of older collectors, computed so that exports line up with data that
//! users already have. Never used for deduplication: both forms collide.

use md5::{Digest, Md5};
use tidings_text::hex;

/// The id of the semantic-search collector: MD5 of URL and title, 32 hex.
pub fn url_and_title_id(url: &str, title: &str) -> String {
    let mut md5 = Md5::new();
    md5.update(url);
    md5.update(title);
    hex::encode(md5.finalize())
}

/// The id of the recommender collector: the first 20 hex digits of the MD5 of
/// the flattened URL (lower case, scheme and one trailing slash dropped, every
/// other character outside `a-z0-9` turned into `_`).
pub fn flattened_url_id(url: &str) -> String {
    let mut id = hex::encode(Md5::digest(flatten(url)));
    id.truncate(20);
    id
}

fn flatten(url: &str) -> String {
    let lower = url.to_lowercase();
    let bare = ["https://", "http://"]
        .iter()
        .find_map(|scheme| lower.strip_prefix(scheme))
        .unwrap_or(&lower);
    bare.strip_suffix('/')
        .unwrap_or(bare)
        .chars()
        .map(|c| match c {
            'a'..='z' | '0'..='9' => c,
            _ => '_',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{flatten, flattened_url_id, url_and_title_id};

    // Expected digests from `printf %s TEXT | md5sum`.
    #[test]
    fn url_and_title_are_hashed_one_after_the_other() {
        assert_eq!(
            url_and_title_id("https://example.com/a", "Title"),
            "78084f50696f116d425a3950d33b9bb4"
        );
    }

    #[test]
    fn flattening_keeps_letters_and_digits_only() {
        let rows = [
            ("https://Example.com/A-b/", "example_com_a_b"),
            ("http://example.com//", "example_com_"),
            ("example.com/ü?q=1", "example_com___q_1"),
        ];
        for (url, flat) in rows {
            assert_eq!(flatten(url), flat);
        }
    }

    #[test]
    fn the_flattened_id_is_the_first_20_digits() {
        let id = flattened_url_id("https://Example.com/A-b/");
        assert_eq!(id, "1d50f30a841c5989fdab");
    }
}
