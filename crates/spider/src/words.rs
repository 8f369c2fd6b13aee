//! Words in addresses that say what a page is, in the languages of the sites
//! that we know. Only tables: each is compared with a whole part of a path, or
//! with the whole name of a parameter, in lower case.

/// Pages that are neither articles nor lists of them.
pub(crate) fn is_excluded(part: &str) -> bool {
    matches!(
        part,
        // Readers and their accounts
        "login" | "log-in" | "logout" | "signin" | "sign-in" | "signup" | "sign-up" | "register"
        | "registration" | "account" | "accounts" | "my-account" | "profile" | "profiles" | "user"
        | "users" | "members" | "member" | "membership" | "password" | "auth" | "oauth" | "sso" | "anmelden" | "registrieren" | "connexion"
        | "inscription" | "iniciar-sesion" | "registro"
        // Search
        | "search" | "suche" | "suchen" | "recherche" | "buscar" | "busqueda" | "cerca" | "zoeken"
        // Tags and authors, each with a list of its own
        | "tag" | "tags" | "label" | "labels" | "keyword" | "keywords" | "author" | "authors" | "autor"
        | "autoren" | "auteur" | "auteurs" | "autores" | "byline" | "people" | "person" | "contributor"
        | "contributors" | "staff" | "team"
        // Shops and subscriptions
        | "cart" | "basket" | "checkout" | "wishlist" | "warenkorb" | "panier" | "carrito" | "subscribe"
        | "subscription" | "subscriptions" | "abo" | "abonnement" | "abonnieren" | "suscripcion" | "donate"
        | "donation" | "spenden" | "newsletter" | "newsletters" | "gift" | "gift-cards" | "coupons"
        // About the site
        | "about" | "about-us" | "ueber-uns" | "a-propos" | "contact" | "contact-us" | "kontakt"
        | "contacto" | "impressum" | "imprint" | "privacy" | "privacy-policy" | "datenschutz" | "terms"
        | "terms-of-use" | "terms-of-service" | "agb" | "cookies" | "cookie-policy" | "legal" | "disclaimer"
        | "accessibility" | "advertise" | "advertising" | "mediadaten" | "careers" | "jobs" | "help" | "hilfe"
        | "faq" | "support" | "feedback" | "corrections" | "sitemap" | "mentions-legales" | "aviso-legal"
        // The same page in another form, and what is no page
        | "print" | "share" | "email" | "comment" | "comments" | "reply" | "feed" | "feeds" | "rss" | "atom"
        | "amp" | "embed" | "gallery" | "galleries" | "download" | "downloads" | "attachment" | "ads"
        | "redirect" | "out" | "wp-admin" | "wp-login" | "wp-json" | "wp-content" | "wp-includes" | "cdn-cgi"
        | "api" | "ajax" | "static" | "assets" | "cgi-bin" | "trackback"
    )
}

/// Endings of what is no page.
pub(crate) fn is_media(ending: &str) -> bool {
    matches!(
        ending,
        "jpg"
            | "jpeg"
            | "png"
            | "gif"
            | "webp"
            | "avif"
            | "svg"
            | "ico"
            | "bmp"
            | "tif"
            | "tiff"
            | "css"
            | "js"
            | "mjs"
            | "json"
            | "xml"
            | "rss"
            | "atom"
            | "rdf"
            | "txt"
            | "csv"
            | "pdf"
            | "ps"
            | "epub"
            | "doc"
            | "docx"
            | "xls"
            | "xlsx"
            | "ppt"
            | "pptx"
            | "odt"
            | "rtf"
            | "zip"
            | "gz"
            | "tgz"
            | "rar"
            | "7z"
            | "tar"
            | "mp3"
            | "m4a"
            | "ogg"
            | "oga"
            | "wav"
            | "flac"
            | "mp4"
            | "m4v"
            | "webm"
            | "avi"
            | "mov"
            | "wmv"
            | "mkv"
            | "m3u8"
            | "apk"
            | "exe"
            | "dmg"
            | "msi"
            | "iso"
            | "ics"
            | "woff"
            | "woff2"
            | "ttf"
            | "eot"
            | "swf"
            | "jar"
            | "bin"
    )
}

/// Endings of pages.
pub(crate) fn is_page(ending: &str) -> bool {
    matches!(
        ending,
        "html" | "htm" | "shtml" | "xhtml" | "php" | "asp" | "aspx" | "jsp" | "do" | "cfm"
    )
}

/// The part of a path under which articles stand.
pub(crate) fn is_article_word(part: &str) -> bool {
    matches!(
        part,
        "article"
            | "articles"
            | "story"
            | "stories"
            | "post"
            | "posts"
            | "p"
            | "a"
            | "artikel"
            | "beitrag"
            | "nachricht"
            | "meldung"
            | "articulo"
            | "noticia"
            | "nota"
            | "nieuws"
            | "articolo"
            | "entry"
            | "press-release"
            | "press-releases"
            | "pressemitteilung"
            | "communique"
            | "statya"
            | "haber"
    )
}

/// The part of a path under which lists stand.
pub(crate) fn is_listing_word(part: &str) -> bool {
    matches!(
        part,
        "category"
            | "categories"
            | "section"
            | "sections"
            | "topic"
            | "topics"
            | "thema"
            | "themen"
            | "kategorie"
            | "kategorien"
            | "rubrik"
            | "ressort"
            | "rubrique"
            | "rubriques"
            | "categorie"
            | "categoria"
            | "categorias"
            | "seccion"
            | "secciones"
            | "tema"
            | "temas"
            | "channel"
            | "channels"
            | "series"
            | "serie"
            | "collection"
            | "collections"
            | "archive"
            | "archives"
            | "archiv"
            | "latest"
            | "region"
            | "regions"
            | "subject"
            | "subjects"
    )
}

/// The part of a path under which days and months stand.
pub(crate) fn is_calendar_word(part: &str) -> bool {
    matches!(
        part,
        "calendar"
            | "kalender"
            | "calendrier"
            | "calendario"
            | "agenda"
            | "events"
            | "event"
            | "termine"
            | "veranstaltungen"
            | "evenements"
            | "eventos"
            | "schedule"
            | "programme"
            | "tv-guide"
    )
}

/// Parameters that turn a page into one of many for the same thing.
pub(crate) fn is_facet(name: &str) -> bool {
    matches!(
        name,
        "sort"
            | "sortby"
            | "sort_by"
            | "order"
            | "orderby"
            | "order_by"
            | "dir"
            | "direction"
            | "filter"
            | "filters"
            | "facet"
            | "facets"
            | "color"
            | "colour"
            | "size"
            | "price"
            | "min_price"
            | "max_price"
            | "brand"
            | "rating"
            | "view"
            | "display"
            | "layout"
            | "limit"
            | "per_page"
            | "perpage"
            | "pagesize"
            | "show"
            | "mode"
            | "style"
            | "lang"
            | "locale"
            | "currency"
    )
}

/// Parameters that hold a day or a month.
pub(crate) fn is_date_param(name: &str) -> bool {
    matches!(
        name,
        "date"
            | "day"
            | "month"
            | "year"
            | "week"
            | "from"
            | "to"
            | "datum"
            | "monat"
            | "jahr"
            | "mois"
            | "annee"
            | "mes"
            | "dia"
            | "ical"
            | "tribe-bar-date"
            | "m"
            | "y"
    )
}

/// Parameters of searches, forms and buttons.
pub(crate) fn is_action(name: &str) -> bool {
    matches!(
        name,
        "q" | "s"
            | "query"
            | "search"
            | "keyword"
            | "keywords"
            | "replytocom"
            | "share"
            | "print"
            | "add-to-cart"
            | "action"
            | "redirect"
            | "redirect_to"
            | "return"
            | "returnurl"
            | "return_to"
            | "next"
            | "url"
            | "format"
            | "output"
            | "feed"
            | "attachment_id"
            | "preview"
            | "download"
            | "comments"
            | "login"
    )
}

/// Parameters that say which page of a list.
pub(crate) fn is_page_param(name: &str) -> bool {
    matches!(
        name,
        "page"
            | "paged"
            | "pg"
            | "pagina"
            | "seite"
            | "start"
            | "offset"
            | "pageno"
            | "page_no"
            | "pagenum"
    )
}

/// Parameters that hold the number of an article.
pub(crate) fn is_article_param(name: &str) -> bool {
    matches!(
        name,
        "id" | "p"
            | "aid"
            | "nid"
            | "artid"
            | "article"
            | "articleid"
            | "article_id"
            | "story"
            | "storyid"
            | "story_id"
            | "news"
            | "newsid"
            | "news_id"
            | "post"
            | "postid"
            | "post_id"
            | "idart"
            | "itemid"
            | "sid"
    )
}

/// Parameters that always hold a session.
pub(crate) fn is_session_param(name: &str) -> bool {
    matches!(
        name,
        "phpsessid"
            | "jsessionid"
            | "aspsessionid"
            | "cfid"
            | "cftoken"
            | "zenid"
            | "oscsid"
            | "sessionid"
            | "session_id"
            | "sess_id"
    )
}

/// Parameters that hold a session if they look like one.
pub(crate) fn may_be_session_param(name: &str) -> bool {
    matches!(
        name,
        "sid"
            | "session"
            | "sess"
            | "s"
            | "sesid"
            | "visit"
            | "visitor"
            | "tok"
            | "token"
            | "osid"
            | "hash"
    )
}

/// Whether the parameter holds the session of a visitor.
pub(crate) fn is_session(name: &str, value: &str) -> bool {
    is_session_param(name) || (may_be_session_param(name) && is_token(value))
}

/// Long, and of letters and digits as no word is.
fn is_token(text: &str) -> bool {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let has = |test: fn(&u8) -> bool| text.bytes().any(|byte| test(&byte));
    text.len() >= 16 && is_plain && has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic)
}
