//! Lines that stand in an article for lawyers: disclaimers, disclosures of
//! affiliate links, copyright. Known by how they begin, or by what they name.

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
}

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
    use super::is_notice;

    #[test]
    fn notices_are_known_by_their_first_words() {
        assert!(is_notice("Disclaimer: nothing here is advice."));
        assert!(is_notice(
            "This post contains affiliate links; we may earn a commission."
        ));
        assert!(is_notice("Copyright © 2024 The Daily"));
        assert!(!is_notice("The disclaimer was signed by both parties."));
        assert!(!is_notice("Copyright law protects authors."));
    }
}
