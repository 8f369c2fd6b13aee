//! Headings that say that the article is over, or interrupted: "Related
//! articles", "Über den Autor", "Lee también", "関連記事". Whole headings are
//! compared, or their first words; never words inside a sentence.

/// What stands under such a heading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    /// Teasers, links, buttons: over at the next real paragraph.
    Links,
    /// Text about something else (the author, sources): over at the next heading.
    Prose,
}

/// Headings are short; longer lines are sentences.
const MAX_HEADING_CHARS: usize = 60;

/// What follows a heading, if it is not the article.
pub(super) fn aside(heading: &str) -> Option<Aside> {
    if heading.len() > MAX_HEADING_CHARS * 2 {
        return None;
    }
    let folded = fold(heading);
    if folded.is_empty() || folded.chars().count() > MAX_HEADING_CHARS {
        return None;
    }
    if PROSE_WHOLE.contains(&folded.as_str())
        || PROSE_START.iter().any(|start| begins(&folded, start))
    {
        return Some(Aside::Prose);
    }
    if LINKS_WHOLE.contains(&folded.as_str())
        || LINKS_START.iter().any(|start| begins(&folded, start))
    {
        return Some(Aside::Links);
    }
    None
}

/// Whether what follows a heading on the page of a product is not about it:
/// opinions of others, other products, the terms of the shop. Above the text the
/// first of these is the name of a tab.
pub(super) fn product_aside(heading: &str, is_below: bool) -> bool {
    if heading.len() > MAX_HEADING_CHARS * 2 {
        return false;
    }
    let folded = fold(heading);
    let is_other = [
        "people",
        "customers also",
        "customers who",
        "similar",
        "sponsored",
    ]
    .iter()
    .any(|start| begins(&folded, start));
    (is_below || is_other) && PRODUCT_START.iter().any(|start| begins(&folded, start))
}

fn begins(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| {
        // Scripts without spaces have no word ends.
        !rest.starts_with(char::is_alphanumeric)
            || !start.is_ascii() && rest.chars().next().is_some_and(crate::text::is_dense)
    })
}

/// Lower case, letters and digits, one space between words.
fn fold(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if matches!(c, '\'' | '’') {
        } else if !out.is_empty() && !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if out.ends_with(' ') {
        out.pop();
    }
    out
}

#[rustfmt::skip]
const LINKS_START: &[&str] = &[
    // English
    "related", "you may also", "you might also", "you may like", "you might like", "more from",
    "more stories", "more articles", "more news", "more posts", "more on this", "more like this", "more in",
    "read next", "read also", "also read", "up next", "recommended", "recent posts", "recent articles",
    "recent news", "recent stories", "latest posts", "latest articles", "latest news", "latest stories",
    "latest from", "popular posts", "popular articles", "most popular", "most read", "trending", "share this",
    "share on", "share the", "share your", "share article", "share post", "follow us", "keep reading",
    "continue reading", "further reading", "similar posts", "similar articles", "other articles",
    "other posts", "featured posts", "featured articles", "what to read next", "dont miss", "explore more",
    "from our blog", "from the blog", "whats next", "subscribe", "sign up", "join our", "join the",
    "newsletter", "get the latest", "stay up to date", "stay in the know", "stay updated", "stay connected",
    "get our", "more resources", "browse by", "this article is part of", "in this article",
    "table of contents", "on this page", "jump to", "related reading", "editors picks",
    "you must be logged in",
    // German
    "das könnte", "mehr zum thema", "weitere artikel", "weitere beiträge", "ähnliche", "auch interessant",
    "lesen sie auch", "lesen sie mehr", "mehr von", "mehr aus", "passend dazu", "meistgelesen", "beliebte",
    "verwandte", "zum weiterlesen", "artikel teilen", "teilen", "zum thema", "neueste", "jetzt abonnieren",
    "inhaltsverzeichnis",
    // French
    "à lire aussi", "lire aussi", "à lire également", "articles similaires", "articles liés",
    "sur le même sujet", "vous aimerez aussi", "vous pourriez aussi", "dans la même", "les plus lus",
    "partager", "à découvrir", "nos derniers", "derniers articles", "sommaire",
    // Spanish
    "artículos relacionados", "noticias relacionadas", "te puede interesar", "también te puede",
    "te recomendamos", "lee también", "leer también", "más noticias", "más información sobre", "lo más leído",
    "lo más visto", "compartir", "entradas relacionadas", "contenido relacionado", "relacionado",
    // Italian, Portuguese, Dutch, Swedish, Danish, Norwegian, Polish, Czech
    "articoli correlati", "leggi anche", "potrebbe interessarti", "ti potrebbe", "condividi", "leia também",
    "leia mais", "veja também", "artigos relacionados", "notícias relacionadas", "você também pode",
    "compartilhe", "mais lidas", "lees ook", "gerelateerd", "meer over", "lees meer", "deel dit",
    "aanbevolen", "läs också", "läs även", "relaterade", "läs mer", "læs også", "les også", "czytaj także",
    "czytaj też", "zobacz także", "zobacz też", "przeczytaj także", "podobne", "powiązane", "čtěte také",
    "související",
    // Russian, Ukrainian, Turkish, Greek, Arabic, Hebrew
    "читайте также", "похожие", "материалы по теме", "по теме", "смотрите также", "поделиться", "рекомендуем",
    "читайте також", "схожі", "ilgili haberler", "benzer", "paylaş", "διαβάστε επίσης", "σχετικά",
    "مواضيع ذات", "اقرأ أيضا", "اقرأ أيضًا", "קראו גם",
    // Japanese, Chinese, Korean
    "関連記事", "関連", "おすすめ", "あわせて読みたい", "人気記事", "最新記事", "シェア", "この記事をシェア", "目次", "相关", "相關", "推荐", "推薦", "延伸閱讀",
    "延伸阅读", "热门", "熱門", "분享", "관련", "추천",
];

#[rustfmt::skip]
const PRODUCT_START: &[&str] = &[
    "reviews", "customer reviews", "product reviews", "user reviews", "ratings", "rating", "customer ratings",
    "top reviews", "customers say", "what customers say", "what our customers", "testimonials", "write a review",
    "customers also", "customers who", "people who", "people also", "people viewed", "frequently bought",
    "bought together", "similar items", "similar products", "similar sponsored", "sponsored", "compare with",
    "compare similar", "related products", "related items", "recently viewed", "recommended for you",
    "you may also", "you might also", "more from this", "more to explore", "complete the look", "pairs well with",
    "shipping and return", "shipping returns", "shipping policies", "returns", "delivery", "questions and answers",
    "questions answers", "customer questions", "have a question", "ask a question", "consider these available",
    "seller feedback", "about the seller", "about this seller", "explore related", "explore more",
    "kundenbewertungen", "bewertungen", "ähnliche produkte", "kunden kauften", "versand", "avis clients", "avis",
    "produits similaires", "vous aimerez", "livraison", "opiniones", "reseñas", "productos relacionados", "envío",
    "recensioni", "prodotti correlati", "avaliações", "produtos relacionados",
];

#[rustfmt::skip]
const LINKS_WHOLE: &[&str] = &[
    "read more", "more", "see also", "tags", "tag", "categories", "category", "topics", "topic",
    "filed under", "share", "sharing", "see more", "view more", "learn more", "links",
    "topics in this article", "advertisement", "contents", "comments", "comment", "whats new",
    "you may be interested in", "popular", "archives", "follow", "next article", "previous article",
    "related topics", "resources", "additional resources", "contact us", "get in touch", "contact",
    "get started", "schlagwörter", "themen", "kommentare", "anzeige", "mots clés", "commentaires",
    "etiquetas", "comentarios", "commenti", "comentários", "タグ", "コメント", "标签", "標籤", "评论", "댓글", "теги",
    "комментарии",
];

#[rustfmt::skip]
const PROSE_START: &[&str] = &[
    "about the author", "about author", "about the writer", "author bio", "about our expert",
    "meet the author", "written by", "reviewed by", "leave a reply", "leave a comment", "post a comment",
    "add a comment", "join the conversation", "join the discussion", "works cited", "article sources",
    "sources and", "references and", "image credit", "photo credit", "about this article", "how we reviewed",
    "editorial guidelines", "editorial disclosure", "editorial disclaimer", "affiliate disclosure",
    "über den autor", "über die autorin", "über den verfasser", "zur person", "quellen", "einzelnachweise",
    "kommentar schreiben", "schreibe einen kommentar", "hinterlasse", "impressum", "à propos de lauteur",
    "laisser un commentaire", "sobre el autor", "sobre la autora", "deja un comentario", "deja una respuesta",
    "sullautore", "sobre o autor", "deixe um comentário", "over de auteur", "om författaren", "о авторе",
    "об авторе", "оставить комментарий", "著者", "この記事を書いた人", "执筆者", "执筆", "关于作者", "關於作者",
];

#[rustfmt::skip]
const PROSE_WHOLE: &[&str] = &[
    "references", "reference", "sources", "source", "citations", "bibliography", "footnotes", "endnotes",
    "notes and references", "disclaimer", "disclosure", "disclosures", "bio", "author", "authors",
    "the author", "acknowledgments", "acknowledgements", "biography", "our sources", "responses", "replies",
    "reviews", "about us", "about", "copyright", "citation", "cite this", "legal", "important disclosures",
    "literatur", "références", "referencias", "fuentes", "riferimenti", "fonti", "referências", "bronnen",
    "källor", "źródła", "bibliografia", "примечания", "источники", "参考文献", "参考资料", "參考資料", "脚注", "출처",
];

#[cfg(test)]
mod tests {
    use super::{Aside, aside};

    #[test]
    fn headings_of_many_languages_end_an_article() {
        for (heading, expected) in [
            ("Related articles", Some(Aside::Links)),
            ("You may also like…", Some(Aside::Links)),
            ("Das könnte Sie auch interessieren", Some(Aside::Links)),
            ("À lire aussi", Some(Aside::Links)),
            ("関連記事はこちら", Some(Aside::Links)),
            ("About the Author: Jane Doe", Some(Aside::Prose)),
            ("Sources:", Some(Aside::Prose)),
            ("Sources of vitamin C", None),
            ("Relatedness in graphs", None),
            ("What is cloud computing?", None),
        ] {
            assert_eq!(aside(heading), expected, "{heading}");
        }
    }
}
