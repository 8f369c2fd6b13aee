//! The purpose of an element, by its name, its ARIA role and the words of its
//! class and id: navigation, comments, a share bar, the article body. The words
//! are compared whole, but for long stems that no other word has. Judges one
//! element; what follows for the text inside is decided elsewhere.

use crate::html::{Document, NodeId, Tag};

/// A set of roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Roles(u32);

impl Roles {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const NAV: Self = Self(1);
    pub(crate) const FOOTER: Self = Self(1 << 1);
    pub(crate) const HEADER: Self = Self(1 << 2);
    pub(crate) const ASIDE: Self = Self(1 << 3);
    pub(crate) const COMMENTS: Self = Self(1 << 4);
    pub(crate) const RELATED: Self = Self(1 << 5);
    pub(crate) const SHARE: Self = Self(1 << 6);
    pub(crate) const AD: Self = Self(1 << 7);
    pub(crate) const HIDDEN: Self = Self(1 << 8);
    pub(crate) const FORM: Self = Self(1 << 9);
    pub(crate) const CAPTION: Self = Self(1 << 10);
    pub(crate) const BYLINE: Self = Self(1 << 11);
    pub(crate) const TAGS: Self = Self(1 << 12);
    pub(crate) const PROMO: Self = Self(1 << 13);
    pub(crate) const CONSENT: Self = Self(1 << 14);
    pub(crate) const TOC: Self = Self(1 << 15);
    pub(crate) const BIO: Self = Self(1 << 16);
    /// Footnotes, sources, references.
    pub(crate) const NOTES: Self = Self(1 << 17);
    /// Declares itself the article body.
    pub(crate) const BODY: Self = Self(1 << 20);
    pub(crate) const ARTICLE: Self = Self(1 << 21);
    pub(crate) const MAIN: Self = Self(1 << 22);

    /// Text in these is not part of the article.
    pub(crate) const OUTSIDE: Self = Self((1 << 20) - 1 - Self::HEADER.0 - Self::TOC.0);

    /// Claims that a layout often makes by mistake.
    pub(crate) const DOUBTFUL_ONES: [Self; 13] = [
        Self::ASIDE,
        Self::RELATED,
        Self::PROMO,
        Self::CONSENT,
        Self::FORM,
        Self::HIDDEN,
        Self::BIO,
        Self::BYLINE,
        Self::TAGS,
        Self::NOTES,
        Self::SHARE,
        Self::AD,
        Self::CAPTION,
    ];
    pub(crate) const DOUBTFUL: Self = {
        let (mut all, mut index) = (0, 0);
        while index < Self::DOUBTFUL_ONES.len() {
            all |= Self::DOUBTFUL_ONES[index].0;
            index += 1;
        }
        Self(all)
    };

    pub(crate) fn has(self, any_of: Self) -> bool {
        self.0 & any_of.0 != 0
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Names and dates in here are not those of the article. A teaser
    /// in the head of a page is the article's own.
    pub(crate) fn is_about_others(self) -> bool {
        self.has(Self::COMMENTS | Self::NAV | Self::FOOTER | Self::ASIDE)
            || self.has(Self::RELATED) && !self.has(Self::HEADER)
    }

    /// Beside the text, and of no role that belongs to other texts.
    pub(crate) fn is_only_beside(self) -> bool {
        !self.has(Self::COMMENTS | Self::NAV | Self::FOOTER | Self::RELATED)
    }

    pub(crate) fn names(self) -> String {
        const NAMES: [&str; 23] = [
            "nav", "footer", "header", "aside", "comments", "related", "share", "ad", "hidden",
            "form", "caption", "byline", "tags", "promo", "consent", "toc", "bio", "notes", "", "",
            "body", "article", "main",
        ];
        let set: Vec<_> = (0..23)
            .filter(|bit| self.0 & (1 << bit) != 0)
            .map(|bit| NAMES[bit])
            .collect();
        set.join(" ")
    }
}

impl std::ops::BitOr for Roles {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Roles {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// The roles that an element claims for itself.
pub(crate) fn own_roles(document: &Document<'_>, node: NodeId) -> Roles {
    let tag = document.tag(node);
    let mut roles = of_tag(tag);
    if tag == Tag::Button && is_heading(document, node)
        || tag == Tag::Figcaption && is_of_quote(document, node)
    {
        return Roles::NONE;
    }
    if matches!(tag, Tag::Text | Tag::Br | Tag::Html | Tag::Body | Tag::Head) {
        return roles;
    }
    for (name, value) in document.attrs(node) {
        match name.len() {
            2 if name.eq_ignore_ascii_case("id") => roles |= of_words(value),
            4 if name.eq_ignore_ascii_case("role") => roles |= of_aria_role(value),
            5 if name.eq_ignore_ascii_case("class") => roles |= of_words(value),
            5 if name.eq_ignore_ascii_case("style") && hides(value) => roles |= Roles::HIDDEN,
            6 if name.eq_ignore_ascii_case("hidden")
                && !value.eq_ignore_ascii_case("until-found") =>
            {
                roles |= Roles::HIDDEN;
            }
            8 if name.eq_ignore_ascii_case("itemprop") => roles |= of_itemprop(value),
            11 if name.eq_ignore_ascii_case("aria-hidden") && value == "true" => {
                roles |= Roles::HIDDEN;
            }
            10 if name.eq_ignore_ascii_case("aria-label") => roles |= of_label(value),
            _ => {}
        }
    }
    roles
}

/// Nodes that are examined inside an element to find its purpose.
const MAX_PREVIEW_NODES: usize = 50;

fn holds(document: &Document<'_>, node: NodeId, wanted: impl Fn(Tag) -> bool) -> bool {
    (node + 1..document.end(node))
        .take(MAX_PREVIEW_NODES)
        .any(|inner| wanted(document.tag(inner)))
}

/// A button around a heading opens what stands under it.
fn is_heading(document: &Document<'_>, button: NodeId) -> bool {
    holds(document, button, |tag| {
        matches!(tag, Tag::H2 | Tag::H3 | Tag::H4 | Tag::H5 | Tag::H6)
    })
}

/// Captions: the author under a quotation, the description under a picture.
fn is_of_quote(document: &Document<'_>, caption: NodeId) -> bool {
    holds(document, document.parent(caption), |tag| {
        tag == Tag::Blockquote
    })
}

fn of_tag(tag: Tag) -> Roles {
    match tag {
        Tag::Nav | Tag::Search => Roles::NAV,
        Tag::Footer => Roles::FOOTER,
        Tag::Header => Roles::HEADER,
        Tag::Aside => Roles::ASIDE,
        Tag::Button | Tag::Select | Tag::Textarea | Tag::Input | Tag::Form => Roles::FORM,
        Tag::Dialog | Tag::Template => Roles::HIDDEN,
        Tag::Figcaption => Roles::CAPTION,
        Tag::Address => Roles::BYLINE,
        Tag::Article => Roles::ARTICLE,
        Tag::Main => Roles::MAIN,
        _ => Roles::NONE,
    }
}

fn of_aria_role(role: &str) -> Roles {
    match role {
        "navigation" | "search" | "menu" | "menubar" | "tablist" | "toolbar" | "menuitem" => {
            Roles::NAV
        }
        "contentinfo" => Roles::FOOTER,
        "banner" => Roles::HEADER,
        "complementary" => Roles::ASIDE,
        "dialog" | "alertdialog" | "tooltip" => Roles::HIDDEN,
        "form" | "button" => Roles::FORM,
        "main" => Roles::MAIN,
        "article" => Roles::ARTICLE,
        _ => Roles::NONE,
    }
}

fn of_itemprop(value: &str) -> Roles {
    match value {
        "articleBody" | "reviewBody" | "blogPost" => Roles::BODY,
        "comment" => Roles::COMMENTS,
        _ => Roles::NONE,
    }
}

fn of_label(value: &str) -> Roles {
    let lower = value.to_ascii_lowercase();
    match lower.as_str() {
        "breadcrumb" | "breadcrumbs" | "pagination" => Roles::NAV,
        "advertisement" | "advertising" => Roles::AD,
        "share" | "social" | "share this article" => Roles::SHARE,
        "related" | "related articles" | "related content" | "related stories" => Roles::RELATED,
        "comments" => Roles::COMMENTS,
        "table of contents" => Roles::TOC,
        _ => Roles::NONE,
    }
}

fn hides(style: &str) -> bool {
    let mut rest = style;
    while let Some(at) = rest.find(['d', 'D', 'v', 'V']) {
        let here = rest[at..].to_ascii_lowercase();
        for property in [
            "display:none",
            "display: none",
            "visibility:hidden",
            "visibility: hidden",
        ] {
            if here.starts_with(property) {
                return true;
            }
        }
        rest = &rest[at + 1..];
    }
    false
}

/// Roles from the words of a class or id attribute.
fn of_words(value: &str) -> Roles {
    let mut roles = Roles::NONE;
    for name in value.split_ascii_whitespace().take(40) {
        roles |= of_name(name);
    }
    roles
}

/// Words of a name that are examined.
const MAX_NAME_WORDS: usize = 12;
/// A name with this many words and only hyphens between them is a sentence.
const MIN_SENTENCE_WORDS: usize = 6;

/// Roles from one class name or id: `article-body`, `relatedPosts`, `c-share__bar`.
fn of_name(name: &str) -> Roles {
    if name.len() > 80 {
        return Roles::NONE;
    }
    let mut words: [&str; MAX_NAME_WORDS] = [""; MAX_NAME_WORDS];
    let mut lower = [0_u8; 80];
    let lower = &mut lower[..name.len()];
    lower.copy_from_slice(name.as_bytes());
    lower.make_ascii_lowercase();
    let Ok(lower) = std::str::from_utf8(lower) else {
        return Roles::NONE;
    };
    let mut count = 0;
    let mut slug = true;
    let bytes = name.as_bytes();
    let mut from = 0;
    for at in 0..=bytes.len() {
        let ends = at == bytes.len() || !bytes[at].is_ascii_alphanumeric() && bytes[at] < 0x80;
        let camel = at > 0
            && at < bytes.len()
            && bytes[at].is_ascii_uppercase()
            && bytes[at - 1].is_ascii_lowercase();
        if ends || camel {
            slug &= !camel && (at == bytes.len() || bytes[at] == b'-');
            if at > from && count < words.len() {
                words[count] = &lower[from..at];
                count += 1;
            }
            from = if camel { at } else { at + 1 };
        }
    }
    // A sentence made into an id names a heading, not a role.
    if count >= MIN_SENTENCE_WORDS && slug || count == words.len() {
        return Roles::NONE;
    }
    let words = &words[..count];
    let mut roles = Roles::NONE;
    for word in words {
        roles |= of_word(word);
    }
    for pair in words.windows(2) {
        roles |= of_pair(pair[0], pair[1]);
    }
    roles
}

fn of_word(word: &str) -> Roles {
    match word {
        "nav" | "navbar" | "navigation" | "menu" | "submenu" | "breadcrumb" | "breadcrumbs"
        | "pagination" | "pager" | "sitemap" | "skiplink" | "topbar" | "megamenu"
        | "searchform" | "searchbox" => Roles::NAV,
        "footer" | "colophon" | "copyright" | "foot" | "subfooter" => Roles::FOOTER,
        "header" | "masthead" | "banner" | "hero" => Roles::HEADER,
        "sidebar" | "aside" | "rail" | "sidecolumn" => Roles::ASIDE,
        "comment" | "comments" | "disqus" | "respond" | "commentlist" | "livefyre" | "replies" => {
            Roles::COMMENTS
        }
        "related" | "recommended" | "recommendations" | "recommendation" | "outbrain"
        | "taboola" | "recirc" | "morestories" | "readmore" | "readnext" | "popular"
        | "trending" | "crp" | "yarpp" | "jp-relatedposts" | "excerpt" | "teaser" | "teasers"
        | "relatedposts" | "similar" | "upnext" | "mostread" | "zergnet" | "revcontent" => {
            Roles::RELATED
        }
        "share" | "sharing" | "social" | "sharedaddy" | "addtoany" | "sharethis" | "addthis"
        | "shares" | "socials" | "socialmedia" | "sociallinks" | "ssba" | "heateor" => Roles::SHARE,
        "ad" | "ads" | "advert" | "advertisement" | "advertising" | "adsense" | "adslot"
        | "dfp" | "sponsor" | "sponsored" | "sponsors" | "adunit" | "advertorial" | "adbox" => {
            Roles::AD
        }
        "newsletter" | "newsletters" | "signup" | "subscribe" | "subscription" | "promo"
        | "promotion" | "optin" | "mailchimp" | "paywall" | "mc4wp" | "subscribers" | "leadgen"
        | "upsell" | "cta" | "ctas" | "disclaimer" | "disclaimers" | "disclosure"
        | "disclosures" | "carousel" | "btn" | "button" | "buttons" | "donate" | "donation"
        | "giveaway" => Roles::PROMO,
        "cookie" | "cookies" | "consent" | "gdpr" | "onetrust" | "popup" | "modal" | "lightbox"
        | "overlay" | "cookiebar" | "popover" | "tooltip" | "offcanvas" => Roles::CONSENT,
        "toc" | "tableofcontents" | "ez-toc" => Roles::TOC,
        "caption" | "figcaption" | "credit" | "photocredit" | "credits" => Roles::CAPTION,
        "byline" | "dateline" | "timestamp" | "postmeta" | "datetime" | "bylines" | "meta"
        | "metadata" | "date" | "readtime" => Roles::BYLINE,
        "tags" | "taglist" | "tagcloud" | "hashtags" | "postmetadata" => Roles::TAGS,
        "authorbox" | "authorbio" | "bio" | "abh" | "author" | "authors" | "contributor"
        | "contributors" | "biography" => Roles::BIO,
        "footnote" | "footnotes" | "endnotes" | "references" | "reference" | "citations"
        | "citation" | "sources" | "bibliography" | "reflist" => Roles::NOTES,
        "hidden" | "noprint" | "hide" | "invisible" => Roles::NONE,
        "articlebody" | "storybody" | "postbody" | "entrycontent" | "postcontent"
        | "articlecontent" | "articletext" | "storycontent" | "bodytext" | "artikeltext"
        | "hentry" => Roles::BODY,
        _ if is_footnote_number(word) => Roles::NOTES,
        _ if word.len() >= MIN_COMPOUND_CHARS => of_compound(word),
        _ => Roles::NONE,
    }
}

/// Shorter words are never taken apart.
const MIN_COMPOUND_CHARS: usize = 8;

/// Words that were written together (`newslettercta`, `imagecredit`), by stems
/// that no other word begins or ends with.
fn of_compound(word: &str) -> Roles {
    const STARTS: [(&str, Roles); 14] = [
        ("newsletter", Roles::PROMO),
        ("subscri", Roles::PROMO),
        ("disclaimer", Roles::PROMO),
        ("disclosure", Roles::PROMO),
        ("breadcrumb", Roles::NAV),
        ("sidebar", Roles::ASIDE),
        ("footer", Roles::FOOTER),
        ("comments", Roles::COMMENTS),
        ("related", Roles::RELATED),
        ("recommend", Roles::RELATED),
        ("contributor", Roles::BIO),
        ("sharebar", Roles::SHARE),
        ("sharebutton", Roles::SHARE),
        ("socialshar", Roles::SHARE),
    ];
    const ENDS: [(&str, Roles); 11] = [
        ("newsletter", Roles::PROMO),
        ("breadcrumbs", Roles::NAV),
        ("navigation", Roles::NAV),
        ("pagination", Roles::NAV),
        ("sidebar", Roles::ASIDE),
        ("footer", Roles::FOOTER),
        ("caption", Roles::CAPTION),
        ("credit", Roles::CAPTION),
        ("byline", Roles::BYLINE),
        ("footnotes", Roles::NOTES),
        ("authorbio", Roles::BIO),
    ];
    let starts = STARTS.iter().filter(|(stem, _)| word.starts_with(stem));
    let ends = ENDS.iter().filter(|(stem, _)| word.ends_with(stem));
    starts
        .chain(ends)
        .fold(Roles::NONE, |roles, (_, role)| roles | *role)
}

/// `fn12`: what the number in the text leads to.
fn is_footnote_number(word: &str) -> bool {
    word.strip_prefix("fn")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn of_pair(first: &str, second: &str) -> Roles {
    match (first, second) {
        (
            "article" | "story" | "post" | "entry" | "blog" | "news",
            "body" | "content" | "text" | "copy" | "richtext",
        )
        | ("body", "content" | "copy" | "text")
        | ("rich" | "main", "text")
        | ("artikel", "text" | "inhalt")
        | ("texte", "article") => Roles::BODY,
        (
            "author" | "writer",
            "bio" | "box" | "info" | "card" | "profile" | "description" | "about" | "block"
            | "section",
        )
        | ("about", "author")
        | ("post" | "entry" | "article", "author") => Roles::BIO,
        ("post" | "entry" | "article", "meta" | "date" | "byline" | "info") => Roles::BYLINE,
        ("post" | "entry" | "article", "tags" | "tag" | "categories" | "terms") => Roles::TAGS,
        ("post" | "entry" | "article" | "posts", "navigation" | "nav" | "pagination") => Roles::NAV,
        ("read" | "more", "next" | "also" | "stories" | "articles" | "posts" | "news" | "from")
        | ("you", "may" | "might")
        | ("see", "also")
        | ("next" | "prev" | "previous", "post" | "article" | "story" | "posts")
        | ("latest" | "recent" | "featured" | "other", "posts" | "articles" | "news" | "stories") => {
            Roles::RELATED
        }
        ("table", "of") | ("index", "toc") => Roles::TOC,
        ("call", "to")
        | ("lead", "magnet" | "form")
        | ("after" | "below", "content" | "post" | "article" | "entry") => Roles::PROMO,
        ("sr" | "screen", "only" | "reader") | ("visually", "hidden") => Roles::HIDDEN,
        ("side", "bar" | "column") => Roles::ASIDE,
        ("img" | "image" | "photo" | "media", "caption" | "credit") => Roles::CAPTION,
        _ => Roles::NONE,
    }
}
