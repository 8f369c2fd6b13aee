//! A page that lists stories, and its links as addresses that can be requested.
//! What can't be requested is left out; each address comes once, with the best
//! that its places say of it.

use std::collections::HashMap;

use jiff::Timestamp;
use tidings_extract::{Anchor, Options, Page, anchors};
use tidings_url::FetchUrl;

/// A page that lists stories.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    pub html: &'a [u8],
    /// The charset of the Content-Type header.
    pub charset: Option<&'a str>,
    /// Where it came from, after redirects.
    pub url: &'a FetchUrl,
    /// Clicks from the home page.
    pub depth: u16,
    /// The listing that linked to it.
    pub parent: Option<&'a FetchUrl>,
}

/// One address that a page links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    pub url: FetchUrl,
    /// The longest of what its links say.
    pub text: String,
    pub is_headline: bool,
    pub is_card: bool,
    /// All its links are in menus.
    pub is_navigation: bool,
    pub is_next: bool,
    /// All its links are `nofollow`.
    pub is_nofollow: bool,
}

impl Link {
    /// A link of which only the address is known.
    pub fn bare(url: FetchUrl) -> Self {
        Self {
            url,
            text: String::new(),
            is_headline: false,
            is_card: false,
            is_navigation: false,
            is_next: false,
            is_nofollow: false,
        }
    }

    fn of(anchor: Anchor) -> Option<Self> {
        Some(Self {
            url: FetchUrl::parse(&anchor.url).ok()?,
            text: anchor.text,
            is_headline: anchor.is_headline,
            is_card: anchor.is_card,
            is_navigation: anchor.is_navigation,
            is_next: anchor.is_next,
            is_nofollow: anchor.is_nofollow,
        })
    }

    fn add(&mut self, other: Self) {
        if other.text.len() > self.text.len() {
            self.text = other.text;
        }
        self.is_headline |= other.is_headline;
        self.is_card |= other.is_card;
        self.is_navigation &= other.is_navigation;
        self.is_next |= other.is_next;
        self.is_nofollow &= other.is_nofollow;
    }
}

/// The links of a listing, in its order.
pub fn links(page: &Listing<'_>) -> Vec<Link> {
    let page = Page {
        html: page.html,
        url: page.url.as_str(),
        charset: page.charset,
        selectors: None,
        feed: None,
        // Nothing here has a date.
        now: Timestamp::UNIX_EPOCH,
    };
    let mut places: HashMap<FetchUrl, usize> = HashMap::new();
    let mut found: Vec<Link> = Vec::new();
    for link in anchors(&page, &Options::default())
        .into_iter()
        .filter_map(Link::of)
    {
        match places.get(&link.url) {
            Some(at) => found[*at].add(link),
            None => {
                places.insert(link.url.clone(), found.len());
                found.push(link);
            }
        }
    }
    found
}
