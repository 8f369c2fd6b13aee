//! Lines that stand in an article for others than its readers: disclaimers,
//! disclosures of affiliate links, copyright, credits of a wire service. And
//! what a site says to all of its readers: about cookies, donations, comments,
//! newsletters. Known by how they begin, or by what they name.

/// Whether a line is such a notice.
pub(super) fn is_notice(text: &str) -> bool {
    let head: String = text
        .chars()
        .take(160)
        .flat_map(char::to_lowercase)
        .collect();
    let head = head.trim_start_matches(['*', '(', '[', ' ', '–', '-']);
    STARTS.iter().any(|start| head.starts_with(start))
        || head.contains("affiliate")
            && (head.contains("commission") || head.contains("links"))
            && text.len() < 600
        || CONTAINS.iter().any(|phrase| head.contains(phrase))
        || is_wire_credit(text)
}

/// What a site says to every reader. An article can be about that: so these count
/// only as long as they are few.
pub(super) fn is_appeal(text: &str) -> bool {
    if text.len() > MAX_APPEAL_BYTES {
        return false;
    }
    let lower = text.to_lowercase();
    // Nearly no line has one of the stems, and it is cheap to know.
    let has_phrase = APPEAL_STEMS.iter().any(|stem| lower.contains(stem))
        && APPEALS.iter().any(|phrase| lower.contains(phrase));
    has_phrase
        || APPEAL_STARTS.iter().any(|start| {
            lower
                .trim_start_matches(['*', '(', '[', ' '])
                .starts_with(start)
        })
}

/// An appeal is one paragraph at most.
const MAX_APPEAL_BYTES: usize = 700;

/// "Reporting by Jane Doe; Editing by John Roe": a credit, not a sentence.
fn is_wire_credit(text: &str) -> bool {
    const STARTS: [&str; 4] = [
        "reporting by ",
        "additional reporting by ",
        "editing by ",
        "writing by ",
    ];
    let text = text.trim_start_matches(['*', '(', '[', ' ', '–', '-']);
    let lower = text.to_lowercase();
    text.len() < MAX_CREDIT_BYTES
        && (lower.starts_with("our standards: ")
            || STARTS.iter().any(|start| {
                let name = text.get(start.len()..).unwrap_or("");
                lower.starts_with(start) && name.starts_with(char::is_uppercase)
            }))
}

/// Credits are one line.
const MAX_CREDIT_BYTES: usize = 300;

#[rustfmt::skip]
const APPEAL_STEMS: &[&str] = &[
    "cookie", "donat", "donac", "inbox", "newsletter", "boletín", "nieuwsbrief", "comment", "kommentar", "journalis", "email address",
    "reader", "questo sito", "support our", "unsere arbeit", "notre travail", "un don", "periodismo", "nosso trabalho", "sostieni", "delivered straight",
];

#[rustfmt::skip]
const APPEALS: &[&str] = &[
    // Cookies
    "necessary cookies are", "functional cookies help", "functional cookies are", "analytical cookies are",
    "analytics cookies are", "performance cookies are", "advertisement cookies are", "advertising cookies are",
    "targeting cookies are", "uncategorized cookies are", "this website uses cookies", "this site uses cookies",
    "we use cookies to", "we use cookies and", "uses cookies to improve", "set by gdpr cookie consent",
    "diese website verwendet cookies", "wir verwenden cookies", "notwendige cookies sind", "ce site utilise des cookies",
    "nous utilisons des cookies", "este sitio web utiliza cookies", "utilizamos cookies", "questo sito utilizza",
    "utilizziamo i cookie", "este site utiliza cookies", "usamos cookies", "deze website maakt gebruik van cookies",
    "wij gebruiken cookies", "ta strona używa plików cookie", "мы используем файлы cookie",
    // Donations
    "support our journalism", "support independent journalism", "support our work", "consider making a donation",
    "consider donating", "make a donation today", "tax-deductible donation", "your donation helps",
    "keep our journalism free", "reader-supported", "we rely on readers like you", "unterstützen sie unsere arbeit",
    "unterstütze unseren journalismus", "soutenez notre travail", "faites un don", "faire un don", "haz una donación",
    "apoya nuestro periodismo", "apoie o nosso trabalho", "sostieni il nostro",
    // Comments
    "comments are moderated", "our comment policy", "our commenting guidelines",
    "your email address will not be published", "log in to comment", "sign in to comment", "to post a comment",
    "kommentare werden moderiert", "les commentaires sont modérés",
    // Newsletters
    "sign up for our newsletter", "sign up for our free newsletter", "subscribe to our newsletter",
    "sign up to our newsletter", "delivered to your inbox", "straight to your inbox", "directly to your inbox",
    "delivered straight to your", "unseren newsletter", "notre newsletter", "nuestro boletín", "nuestra newsletter",
    "alla nostra newsletter", "nossa newsletter", "onze nieuwsbrief",
];

#[rustfmt::skip]
const APPEAL_STARTS: &[&str] = &[
    "donate to ", "donate today", "donate now", "please donate", "if you value our reporting", "if you enjoyed this article",
    "by clicking to watch this video", "by submitting this form", "your browser does not support",
];

#[rustfmt::skip]
const STARTS: &[&str] = &[
    "disclaimer:", "disclosure:", "affiliate disclosure", "advertiser disclosure", "editorial disclosure",
    "copyright ©", "© ", "©20", "(c) 20", "all rights reserved", "the views expressed",
    "the opinions expressed", "views expressed are", "haftungsausschluss:", "alle rechte vorbehalten",
    "tous droits réservés", "todos los derechos reservados", "tutti i diritti riservati",
    "todos os direitos reservados", "alle rechten voorbehouden", "все права защищены", "無断転載", "版权所有", "版權所有",
];

#[rustfmt::skip]
const CONTAINS: &[&str] = &[
    "all rights reserved", "for informational purposes only", "for general information purposes only",
    "does not constitute legal", "does not constitute an endorsement", "does not constitute financial",
    "article originally appeared", "article was originally published", "article also appeared in",
    "story originally appeared", "story was originally published",
    "dient nur zu informationszwecken", "uniquement à titre informatif", "únicamente con fines informativos",
];

#[cfg(test)]
mod tests {
    use super::{is_appeal, is_notice};

    #[test]
    fn notices_are_known_by_their_first_words() {
        assert!(is_notice("Disclaimer: nothing here is advice."));
        assert!(is_notice(
            "This post contains affiliate links; we may earn a commission."
        ));
        assert!(is_notice("Copyright © 2024 The Daily"));
        assert!(!is_notice("The disclaimer was signed by both parties."));
        assert!(!is_notice("Copyright law protects authors."));
        assert!(is_notice("(Reporting by Jane Doe; Editing by John Roe)"));
        assert!(!is_notice("Reporting by night is what she likes."));
    }

    #[test]
    fn every_phrase_has_a_stem() {
        for phrase in super::APPEALS {
            assert!(
                super::APPEAL_STEMS.iter().any(|stem| phrase.contains(stem)),
                "{phrase}"
            );
        }
    }

    #[test]
    fn what_a_site_says_to_everybody_is_an_appeal() {
        for line in [
            "Necessary cookies are absolutely essential for the website to work.",
            "We rely on readers like you. Please consider making a donation.",
            "Comments are moderated and may take a day to appear.",
            "The best of the week, delivered to your inbox on Fridays.",
        ] {
            assert!(is_appeal(line), "{line}");
        }
        for line in [
            "The cookies are baked for twelve minutes.",
            "She left a donation of ten loaves on the sill.",
        ] {
            assert!(!is_appeal(line), "{line}");
        }
    }
}
