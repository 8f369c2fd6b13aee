//! What keeps the reader from the article: a paywall, a consent dialogue, a
//! captcha, a login, a geographic block, a shell without its scripts, a "not
//! found" with a success status (soft 404). Judged by the page itself; a long
//! article has a paywall at most. That the page declares a paywall and that its
//! text is cut off are two facts.

use crate::article::Flags;
use crate::text::letters;

/// A wall has less text than this.
const MAX_WALL_SIZE: usize = 1_500;

/// A page that says only what keeps the reader away has less text than this,
const MAX_BARE_SIZE: usize = 600;
/// and a shell less than this.
const MAX_SHELL_SIZE: usize = 400;

/// The evidence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs<'a> {
    pub(crate) title: &'a str,
    /// The extracted text.
    pub(crate) text: &'a str,
    /// All text of the page, in blocks.
    pub(crate) page: &'a str,
    pub(crate) says_paywall: bool,
    /// An element of the page calls itself a paywall.
    pub(crate) has_paywall_box: bool,
    /// An element or a script of a captcha service.
    pub(crate) has_captcha: bool,
    /// A field for a password.
    pub(crate) has_password: bool,
    /// What stands in `noscript` asks for scripts.
    pub(crate) asks_for_scripts: bool,
    pub(crate) amp: bool,
}

pub(crate) fn find(signs: &Signs<'_>) -> Flags {
    let short = signs.text.len() < MAX_WALL_SIZE;
    let title = signs.title.to_lowercase();
    let page = signs.page.to_lowercase();
    let contains = |phrases: &[&str]| phrases.iter().any(|phrase| page.contains(phrase));
    let is_line = |lines: &[&str]| page.lines().any(|line| lines.contains(&line.trim()));
    let captcha = short
        && (CAPTCHA_TITLES.contains(&letters(&title).as_str())
            || contains(CAPTCHA)
            || signs.has_captcha && page.len() < MAX_SHELL_SIZE);
    let is_bare = signs.text.len() < MAX_BARE_SIZE && page.len() < 3_000;
    let geo_block = is_bare && !captcha && (contains(GEO_BLOCK) || title.contains("451"));
    let login_wall = is_bare
        && !captcha
        && !geo_block
        && (contains(LOGIN) || signs.has_password && signs.text.len() < MAX_SHELL_SIZE);
    let missing = signs.text.len() < MAX_BARE_SIZE
        && (is_not_found(&title) || page.len() < 3_000 && contains(NOT_FOUND));
    let is_cut = signs.text.len() < 3_000
        && (signs.has_paywall_box || contains(PAYWALL) || is_line(PAYWALL_LINES));
    let consent_wall = short
        && !captcha
        && CONSENT
            .iter()
            .filter(|phrase| page.contains(**phrase))
            .count()
            > 1
        && page.len() < 6_000;
    let walled = captcha || geo_block || login_wall || missing || consent_wall;
    Flags {
        paywall: signs.says_paywall || is_cut,
        truncated: is_cut || signs.says_paywall && signs.text.len() < MAX_BARE_SIZE,
        login_wall,
        geo_block,
        script_shell: !walled
            && signs.text.len() < MAX_SHELL_SIZE
            && (signs.asks_for_scripts || page.len() < MAX_SHELL_SIZE && contains(SCRIPTS)),
        consent_wall,
        soft_404: missing && !captcha && !geo_block,
        captcha,
        amp: signs.amp,
    }
}

fn is_not_found(title: &str) -> bool {
    title
        .split(|c: char| !c.is_alphanumeric())
        .any(|word| word == "404")
        || NOT_FOUND.iter().any(|phrase| title.contains(phrase))
}

#[rustfmt::skip]
const CAPTCHA_TITLES: &[&str] = &[
    "justamoment", "attentionrequiredcloudflare", "accessdenied", "areyouarobot", "robotcheck",
    "securitycheck", "humanverification", "verifyyouarehuman", "accesstothispagehasbeendenied",
];

#[rustfmt::skip]
const CAPTCHA: &[&str] = &[
    "verify you are human", "verifying you are human", "verify that you are not a robot",
    "prove you are human", "i'm not a robot", "are you a robot", "checking your browser before",
    "unusual traffic from your", "complete the captcha", "please enable js and disable any ad blocker",
    "press & hold to confirm", "press and hold to confirm", "press & hold the button", "please enable cookies and javascript to continue",
    "bestätigen sie, dass sie kein roboter", "je ne suis pas un robot", "no soy un robot",
    "non sono un robot", "私はロボットではありません",
];

#[rustfmt::skip]
const NOT_FOUND: &[&str] = &[
    "page not found", "page can't be found", "page can’t be found", "page cannot be found",
    "page doesn't exist", "page does not exist", "page you are looking for", "page you were looking for",
    "page you requested", "no longer available", "article not found", "nothing was found at this location",
    "seite nicht gefunden", "seite wurde nicht gefunden", "seite existiert nicht", "page introuvable",
    "page n'existe pas", "page n’existe pas", "página no encontrada", "no se ha encontrado la página",
    "pagina non trovata", "página não encontrada", "pagina niet gevonden", "sidan hittades inte",
    "strona nie została znaleziona", "страница не найдена", "ページが見つかりません", "お探しのページ", "页面不存在", "找不到頁面",
    "페이지를 찾을 수 없습니다",
];

#[rustfmt::skip]
const PAYWALL: &[&str] = &[
    "subscribe to continue reading", "subscribe to read", "to continue reading", "already a subscriber",
    "this article is for subscribers", "for subscribers only", "become a subscriber to",
    "sign in to read the full", "register to continue reading", "to read the full article",
    "you have reached your limit of free", "unlock this article", "this content is for members only",
    "weiterlesen mit", "dieser artikel ist exklusiv für", "jetzt weiterlesen", "nur für abonnenten",
    "bereits abonnent", "réservé aux abonnés", "article réservé", "il vous reste", "déjà abonné",
    "solo para suscriptores", "suscríbete para seguir leyendo", "contenido exclusivo para suscriptores",
    "riservato agli abbonati", "exclusivo para assinantes", "alleen voor abonnees", "только для подписчиков",
    "有料会員", "この記事は有料", "会員限定記事",
];

/// Lines that are a wall if nothing else is on them.
#[rustfmt::skip]
const PAYWALL_LINES: &[&str] = &[
    "subscribers only", "members only", "premium content", "exclusive to subscribers", "nur für abonnenten",
    "abonnés", "solo suscriptores", "solo abbonati",
];

#[rustfmt::skip]
const LOGIN: &[&str] = &[
    "log in to continue", "login to continue", "sign in to continue", "please log in to", "please sign in to",
    "you must be logged in", "you must log in", "you need to log in", "you need to sign in", "login required",
    "log in or create an account to", "sign in to view", "log in to view", "bitte melden sie sich an",
    "anmelden, um fortzufahren", "connectez-vous pour", "vous devez être connecté", "inicia sesión para",
    "accedi per continuare", "faça login para", "log in om verder", "войдите, чтобы", "ログインしてください", "请登录",
];

#[rustfmt::skip]
const GEO_BLOCK: &[&str] = &[
    "unavailable for legal reasons", "european economic area", "not available in your country",
    "not available in your region", "not available in your location", "unavailable in your country",
    "unavailable in your region", "unavailable in your location", "unavailable in most european countries",
    "isn't available in your", "isn’t available in your", "in ihrem land nicht verfügbar",
    "pas disponible dans votre pays", "no está disponible en tu país", "non è disponibile nel tuo paese",
    "não está disponível no seu país",
];

#[rustfmt::skip]
const SCRIPTS: &[&str] = &[
    "enable javascript", "javascript is required", "javascript is disabled", "requires javascript",
    "javascript aktivieren", "activer javascript", "activez javascript", "habilite javascript", "activa javascript",
    "abilita javascript", "включите javascript", "javascriptを有効",
];

/// Whether what a page says to browsers without scripts is that it needs them.
pub(crate) fn asks_for_scripts(notice: &str) -> bool {
    let lower = notice.to_lowercase();
    SCRIPTS.iter().any(|phrase| lower.contains(phrase))
}

#[rustfmt::skip]
const CONSENT: &[&str] = &[
    "we value your privacy", "accept all", "reject all", "manage preferences", "cookie settings",
    "we and our partners", "consent to the use", "your privacy choices", "before you continue",
    "store and/or access information on a device", "alle akzeptieren", "alles akzeptieren",
    "wir und unsere partner", "zustimmen und weiter", "mit werbung weiterlesen", "cookie-einstellungen",
    "tout accepter", "continuer sans accepter", "nos partenaires", "aceptar todo", "aceptar y continuar",
    "nuestros socios", "accetta tutti", "aceitar todos", "alles accepteren", "zaakceptuj wszystko",
    "すべて受け入れる",
];

#[cfg(test)]
mod tests {
    use super::{Signs, find};
    use crate::article::Flags;

    #[test]
    fn walls_are_classified() {
        let article = "A long and ordinary paragraph about the page you requested and how we value your privacy. ".repeat(60);
        for (name, title, page, expected) in [
            (
                "challenge",
                "Just a moment...",
                "Verify you are human by completing the action below.",
                Flags {
                    captcha: true,
                    ..Flags::default()
                },
            ),
            (
                "not found",
                "404 - Page not found",
                "Sorry, the page you were looking for has moved.",
                Flags {
                    soft_404: true,
                    ..Flags::default()
                },
            ),
            (
                "german",
                "Seite nicht gefunden",
                "Zur Startseite",
                Flags {
                    soft_404: true,
                    ..Flags::default()
                },
            ),
            (
                "consent",
                "The Daily",
                "We value your privacy. We and our partners store and/or access information on a device. Accept all. Reject all.",
                Flags {
                    consent_wall: true,
                    ..Flags::default()
                },
            ),
            (
                "login",
                "Members",
                "Please sign in to read this story.",
                Flags {
                    login_wall: true,
                    ..Flags::default()
                },
            ),
            (
                "geography",
                "451",
                "This site is not available to visitors from the European Economic Area.",
                Flags {
                    geo_block: true,
                    ..Flags::default()
                },
            ),
            (
                "press and hold",
                "The Daily",
                "Press & Hold to confirm you are a human (and not a bot).",
                Flags {
                    captcha: true,
                    ..Flags::default()
                },
            ),
            (
                "a service against bots",
                "daily.example",
                "Please enable JS and disable any ad blocker",
                Flags {
                    captcha: true,
                    ..Flags::default()
                },
            ),
            (
                "a shell",
                "The Daily",
                "You need to enable JavaScript to run this app.",
                Flags {
                    script_shell: true,
                    ..Flags::default()
                },
            ),
            (
                "a free text that speaks of subscribers",
                "The print edition",
                "Subscribers only get our print edition; this text is free.",
                Flags::default(),
            ),
            (
                "paywall",
                "A story",
                "The first lines. Subscribe to continue reading. Already a subscriber?",
                Flags {
                    paywall: true,
                    truncated: true,
                    ..Flags::default()
                },
            ),
            ("an article", "A story", article.as_str(), Flags::default()),
        ] {
            let signs = Signs {
                title,
                text: page,
                page,
                says_paywall: false,
                has_paywall_box: false,
                has_captcha: false,
                has_password: false,
                asks_for_scripts: false,
                amp: false,
            };
            assert_eq!(find(&signs), expected, "{name}");
        }
    }
}
